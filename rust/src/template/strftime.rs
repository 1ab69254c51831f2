// SPDX-License-Identifier: Apache-2.0
//! `datetime.strftime` of a time without a zone, in the C locale, as glibc writes it.

use super::budget::Text;
use jiff::civil::DateTime;
use minijinja::Error;

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A number with the character and the width of its padding.
struct Number(i64, char, usize);

fn number(time: DateTime, directive: char) -> Option<Number> {
    let hour = i64::from(time.hour());
    let week_day = i64::from(time.weekday().to_monday_zero_offset());
    let year_day = i64::from(time.day_of_year());
    let iso = time.date().iso_week_date();
    Some(match directive {
        'C' => Number(i64::from(time.year()) / 100, '0', 2),
        'd' => Number(time.day().into(), '0', 2),
        'e' => Number(time.day().into(), ' ', 2),
        'f' => Number(i64::from(time.subsec_nanosecond()) / 1000, '0', 6),
        'g' => Number(i64::from(iso.year()) % 100, '0', 2),
        'G' => Number(iso.year().into(), '0', 4),
        'H' => Number(hour, '0', 2),
        'I' => Number((hour + 11) % 12 + 1, '0', 2),
        'j' => Number(year_day, '0', 3),
        'k' => Number(hour, ' ', 2),
        'l' => Number((hour + 11) % 12 + 1, ' ', 2),
        'm' => Number(time.month().into(), '0', 2),
        'M' => Number(time.minute().into(), '0', 2),
        'S' => Number(time.second().into(), '0', 2),
        'u' => Number(week_day + 1, '0', 1),
        'U' => Number((year_day + 6 - (week_day + 1) % 7) / 7, '0', 2),
        'V' => Number(iso.week().into(), '0', 2),
        'w' => Number((week_day + 1) % 7, '0', 1),
        'W' => Number((year_day + 6 - week_day) / 7, '0', 2),
        'y' => Number(i64::from(time.year()) % 100, '0', 2),
        'Y' => Number(time.year().into(), '0', 1),
        _ => return None,
    })
}

fn name(time: DateTime, directive: char) -> Option<&'static str> {
    let day = DAYS[time.weekday().to_monday_zero_offset() as usize];
    let month = MONTHS[time.month() as usize - 1];
    let is_morning = time.hour() < 12;
    Some(match directive {
        'a' => &day[..3],
        'A' => day,
        'b' | 'h' => &month[..3],
        'B' => month,
        'n' => "\n",
        'p' => {
            if is_morning {
                "AM"
            } else {
                "PM"
            }
        }
        'P' => {
            if is_morning {
                "am"
            } else {
                "pm"
            }
        }
        't' => "\t",
        'z' | 'Z' => "",
        '%' => "%",
        _ => return None,
    })
}

/// Directives that are short for a format.
fn composed(directive: char) -> Option<&'static str> {
    Some(match directive {
        'c' => "%a %b %e %H:%M:%S %Y",
        'D' | 'x' => "%m/%d/%y",
        'F' => "%Y-%m-%d",
        'r' => "%I:%M:%S %p",
        'R' => "%H:%M",
        'T' | 'X' => "%H:%M:%S",
        _ => return None,
    })
}

fn write(out: &mut Text, format: &str, time: DateTime) -> Result<(), Error> {
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push(&rest[..at])?;
        let tail = rest[at + 1..].trim_start_matches(['-', '_', '0', '^', '#']);
        let flag = rest[at + 1..rest.len() - tail.len()].chars().last();
        let Some(directive) = tail.chars().next() else {
            rest = &rest[at..];
            break;
        };
        if let Some(Number(number, fill, width)) = number(time, directive) {
            let text = number.to_string();
            let fill = flag.map_or(fill, |flag| if flag == '_' { ' ' } else { '0' });
            let missing = if flag == Some('-') { 0 } else { width.saturating_sub(text.len()) };
            out.push_repeated(fill.encode_utf8(&mut [0; 4]), missing)?;
            out.push(&text)?;
        } else if let Some(name) = name(time, directive) {
            out.push(&if flag == Some('^') { name.to_uppercase() } else { name.to_owned() })?;
        } else if let Some(format) = composed(directive) {
            write(out, format, time)?;
        } else {
            out.push(&rest[at..rest.len() - tail.len() + directive.len_utf8()])?;
        }
        rest = &tail[directive.len_utf8()..];
    }
    Ok(out.push(rest)?)
}

pub fn strftime(format: &str, time: DateTime) -> Result<String, Error> {
    let mut out = Text::default();
    write(&mut out, format, time)?;
    Ok(out.into_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_read_as_in_python() {
        let time = jiff::civil::date(2024, 3, 7).at(15, 4, 5, 678_000_000);
        let cases = [
            ("%Y-%m-%d %H:%M:%S.%f", "2024-03-07 15:04:05.678000"),
            ("%-d %e %_m %-I %l %k %03", "7  7  3 3  3 15 %03"),
            ("%a %A %b %B %p %P %^a", "Thu Thursday Mar March PM pm THU"),
            (
                "%c|%x|%X|%D|%F|%T|%R|%r",
                "Thu Mar  7 15:04:05 2024|03/07/24|15:04:05|03/07/24|2024-03-07|15:04:05|15:04|03:04:05 PM",
            ),
            ("%j %U %W %V %G %g %u %w %y %C", "067 09 10 10 2024 24 4 4 24 20"),
            ("[%z%Z] 100%% %q %", "[] 100% %q %"),
        ];
        for (format, text) in cases {
            assert_eq!(strftime(format, time).ok().as_deref(), Some(text), "{format}");
        }
    }
}
