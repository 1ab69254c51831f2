// SPDX-License-Identifier: Apache-2.0
//! Properties of a chat line while it is typed: whether it continues below, and its completions.

/// Words that begin or continue commands.
#[derive(Default)]
pub struct Words {
    /// Whole commands: "/think off".
    pub phrases: Vec<String>,
    /// Text before the name of a file: "/load ".
    pub files: Vec<String>,
}

const QUOTES: &str = "\"\"\"";

/// True if Enter begins another line: after a backslash, and between three quotation marks and three more.
pub fn is_incomplete(text: &str) -> bool {
    if let Some(opened) = text.trim_start().strip_prefix(QUOTES) {
        return !opened.trim_end().ends_with(QUOTES);
    }
    // A command that sets a text may quote it, too.
    if let Some((command, opened)) = text.split_once(QUOTES) {
        if command.starts_with('/') && !command.contains('\n') {
            return !opened.trim_end().ends_with(QUOTES);
        }
    }
    text.ends_with('\\')
}

/// The start of the typed word, and its completions. Completions that nothing follows do not end with a space.
pub fn candidates(phrases: &[String], typed: &str) -> (usize, Vec<String>) {
    let start = typed.rfind(' ').map_or(0, |space| space + 1);
    let mut found: Vec<String> = Vec::new();
    for phrase in phrases.iter().filter(|phrase| phrase.starts_with(typed)) {
        let word = phrase[start..].split_inclusive(' ').next().unwrap_or("").to_owned();
        if !word.is_empty() && !found.iter().any(|known| known.trim_end() == word.trim_end()) {
            found.push(word);
        }
    }
    (start, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_on() {
        for text in ["a\\", "\"\"\"", "\"\"\"a\nb", "  \"\"\" a", "/system \"\"\"You are", "a\\\nb\\"] {
            assert!(is_incomplete(text), "{text}");
        }
        for text in [
            "",
            "a",
            "a\nb",
            "\"\"\"a\nb\"\"\"",
            "\"\"\"a\"\"\" ",
            "say \"\"\" twice",
            "/system \"\"\"a\nb\"\"\"",
            "a\\\nb",
        ] {
            assert!(!is_incomplete(text), "{text}");
        }
    }

    #[test]
    fn words_of_commands_complete() {
        let phrases: Vec<String> =
            ["/think on", "/think off", "/stats", "/set temp ", "/show"].map(String::from).into();
        assert_eq!(candidates(&phrases, "/th"), (0, vec!["/think ".to_owned()]));
        assert_eq!(candidates(&phrases, "/think o"), (7, vec!["on".to_owned(), "off".to_owned()]));
        assert_eq!(candidates(&phrases, "/s").1, ["/stats", "/set ", "/show"]);
        assert_eq!(candidates(&phrases, "hello /th").1, Vec::<String>::new());
    }
}
