// SPDX-License-Identifier: Apache-2.0
//! Streams an answer and cancels another one: stream [MODEL]. Without MODEL: the bundled demo model.
//!   rustc stream.rs $(pkg-config --libs saker)
use std::ffi::{CStr, CString, c_char, c_int};
use std::io::Write;
use std::ptr::{null, null_mut};

/// The functions of saker.h that this program calls. Handles are opaque pointers.
mod ffi {
    use super::{c_char, c_int};

    macro_rules! handles {
        ($($name:ident)*) => { $(#[repr(C)] pub struct $name { _private: [u8; 0] })* };
    }
    handles!(SakerText SakerModel SakerStream SakerEvent);

    pub const OK: c_int = 0;
    pub const END: c_int = 65;
    pub const EVENT_CONTENT: c_int = 2;
    pub const EVENT_END: c_int = 7;
    pub const EVENT_FAILURE: c_int = 8;

    #[link(name = "saker_c")]
    unsafe extern "C" {
        pub fn saker_text_data(text: *const SakerText) -> *const c_char;
        pub fn saker_text_free(text: *mut SakerText);
        pub fn saker_model_load(
            model: *const c_char,
            options: *const c_char,
            out: *mut *mut SakerModel,
            message: *mut *mut SakerText,
        ) -> c_int;
        pub fn saker_model_free(model: *mut SakerModel);
        pub fn saker_model_submit(
            model: *mut SakerModel,
            request: *const c_char,
            out: *mut *mut SakerStream,
            message: *mut *mut SakerText,
        ) -> c_int;
        pub fn saker_stream_next(
            stream: *mut SakerStream,
            timeout_ms: i64,
            out: *mut *mut SakerEvent,
            message: *mut *mut SakerText,
        ) -> c_int;
        pub fn saker_stream_cancel(stream: *mut SakerStream);
        pub fn saker_stream_free(stream: *mut SakerStream);
        pub fn saker_event_kind(event: *const SakerEvent) -> c_int;
        pub fn saker_event_text(event: *const SakerEvent) -> *const c_char;
        pub fn saker_event_json(
            event: *const SakerEvent,
            json: *mut *mut SakerText,
            message: *mut *mut SakerText,
        ) -> c_int;
        pub fn saker_event_free(event: *mut SakerEvent);
    }
}

/// The bytes of a text, which is freed.
fn taken(text: *mut ffi::SakerText) -> String {
    let value = unsafe { CStr::from_ptr(ffi::saker_text_data(text)) };
    let value = value.to_string_lossy().into_owned();
    unsafe { ffi::saker_text_free(text) };
    value
}

fn checked(status: c_int, message: *mut ffi::SakerText) -> Result<(), String> {
    if status == ffi::OK { Ok(()) } else { Err(taken(message)) }
}

struct Model(*mut ffi::SakerModel);

impl Model {
    fn load(path: Option<&str>) -> Result<Self, String> {
        let path = path.map(|path| CString::new(path).expect("a path without NUL"));
        let (mut model, mut message) = (null_mut(), null_mut());
        let name = path.as_ref().map_or(null(), |path| path.as_ptr());
        let options = c"{\"threads\": 1}".as_ptr();
        checked(unsafe { ffi::saker_model_load(name, options, &mut model, &mut message) }, message)?;
        Ok(Self(model))
    }

    fn submit(&self, request: &CStr) -> Result<Stream, String> {
        let (mut stream, mut message) = (null_mut(), null_mut());
        checked(unsafe { ffi::saker_model_submit(self.0, request.as_ptr(), &mut stream, &mut message) }, message)?;
        Ok(Stream(stream))
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        unsafe { ffi::saker_model_free(self.0) }
    }
}

enum Event {
    Content(String),
    End(String),
    Other,
}

struct Stream(*mut ffi::SakerStream);

impl Stream {
    fn cancel(&self) {
        unsafe { ffi::saker_stream_cancel(self.0) }
    }
}

impl Iterator for Stream {
    type Item = Result<Event, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut event, mut message) = (null_mut(), null_mut());
        let status = unsafe { ffi::saker_stream_next(self.0, -1, &mut event, &mut message) };
        if status == ffi::END {
            return None;
        }
        if let Err(error) = checked(status, message) {
            return Some(Err(error));
        }
        let text = || unsafe { CStr::from_ptr(ffi::saker_event_text(event)) }.to_string_lossy().into_owned();
        let given = match unsafe { ffi::saker_event_kind(event) } {
            ffi::EVENT_CONTENT => Ok(Event::Content(text())),
            ffi::EVENT_FAILURE => Err(text()),
            ffi::EVENT_END => {
                let mut json = null_mut();
                let status = unsafe { ffi::saker_event_json(event, &mut json, &mut message) };
                checked(status, message).map(|()| Event::End(taken(json)))
            }
            _ => Ok(Event::Other),
        };
        unsafe { ffi::saker_event_free(event) };
        Some(given)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        unsafe { ffi::saker_stream_free(self.0) }
    }
}

/// Prints the content of an answer; cancels it after so many pieces, if that is given.
fn show(mut stream: Stream, pieces: Option<usize>) -> Result<(), String> {
    let mut count = 0;
    while let Some(event) = stream.next() {
        match event? {
            Event::Content(text) => {
                print!("{text}");
                std::io::stdout().flush().map_err(|error| error.to_string())?;
                count += 1;
                if Some(count) == pieces {
                    stream.cancel();
                }
            }
            Event::End(json) => eprintln!("{json}"),
            Event::Other => {}
        }
    }
    println!();
    Ok(())
}

fn main() -> Result<(), String> {
    let model = Model::load(std::env::args().nth(1).as_deref())?;
    show(model.submit(c"{\"messages\": [{\"role\": \"user\", \"content\": \"What does a fox eat?\"}]}")?, None)?;
    show(model.submit(c"{\"prompt\": \"Once upon a time\", \"ignore_eos\": true, \"max_tokens\": -1}")?, Some(3))
}
