// SPDX-License-Identifier: Apache-2.0
//! Work on strangers' files and input, which may take any time and memory, so it runs within bounds. Code that
//! allocates stops at its next allocation beyond them (memory.rs). Code that may run long without allocating gets a
//! thread of its own, which is abandoned when its time is up.

use crate::memory::{self, Bounds, Failed, Scope, Shortage};
use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, Once, OnceLock, PoisonError};
use std::time::Duration;

/// Why work failed.
#[derive(Debug, Clone)]
pub enum Failure {
    Text(String),
    /// The system has no memory.
    NoMemory,
    /// Exceeded the bounds.
    Bytes(usize),
    Time(Duration),
    /// Exceeded the bounds, and its thread still runs.
    Lost(Duration),
}

impl Failure {
    /// One line. include/saker_rs.h documents the line for a lack of memory.
    pub fn text(&self) -> String {
        match self {
            Failure::Text(text) => text.clone(),
            Failure::NoMemory => "there is not enough memory".into(),
            Failure::Bytes(most) => format!("it takes more than {} MB of memory", most >> 20),
            Failure::Time(most) | Failure::Lost(most) => format!("it takes more than {:.1} s", most.as_secs_f64()),
        }
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure::Text(text)
    }
}

pub type Result<T> = std::result::Result<T, Failure>;

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("unknown panic");
    format!("unexpected failure: {text}")
}

fn failure_of(shortage: Shortage, bounds: Option<Bounds>) -> Failure {
    match (shortage, bounds) {
        (Shortage::Bytes, Some(bounds)) => Failure::Bytes(bounds.bytes),
        (Shortage::Time, Some(bounds)) => Failure::Time(bounds.time),
        _ => Failure::NoMemory,
    }
}

/// How much slower this machine is than the reference machine of our time limits, from 1 to 16: work that is allowed
/// there must not fail here. The minimum of several measurements, since other programs may run.
fn slowness() -> f64 {
    const REFERENCE: Duration = Duration::from_micros(375);
    static KNOWN: OnceLock<f64> = OnceLock::new();
    let try_once = || {
        let start = memory::thread_time();
        let mut words: Vec<String> =
            (0..4096u64).map(|i| format!("{:x}", i.wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect();
        words.sort_unstable();
        drop(std::hint::black_box(words));
        memory::thread_time() - start
    };
    *KNOWN.get_or_init(|| {
        let best = (0..4).map(|_| try_once()).min().unwrap_or(REFERENCE);
        (best.as_secs_f64() / REFERENCE.as_secs_f64()).clamp(1.0, 16.0)
    })
}

fn paced(bounds: Bounds) -> Bounds {
    Bounds { time: bounds.time.mul_f64(slowness()), ..bounds }
}

fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Panics are reported as errors, so the default hook's print to stderr is noise.
        std::panic::set_hook(Box::new(|_| {}));
        memory::install();
    });
}

/// Runs `body`. A panic, also of a failed allocation, becomes an error. A shortage is reported even if `body` turned it
/// into another error.
fn caught_within<T>(bounds: Option<Bounds>, body: impl FnOnce() -> Result<T>) -> Result<T> {
    prepare();
    // Clears the record of a failure in earlier work that a library tolerated.
    memory::recover();
    let result = {
        let _scope = bounds.map(Scope::new);
        catch_unwind(AssertUnwindSafe(body))
    };
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(failure)) => Err(memory::recover().map_or(failure, |shortage| failure_of(shortage, bounds))),
        Err(payload) => Err(match memory::recover() {
            Some(shortage) => failure_of(shortage, bounds),
            None if payload.is::<Failed>() => Failure::NoMemory,
            None => Failure::Text(panic_text(&*payload)),
        }),
    }
}

pub fn caught<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    caught_within(None, body)
}

/// Runs `body` on this thread, within `bounds`. REQUIRES: it allocates often enough to be stopped by that.
pub fn here<T>(bounds: Bounds, body: impl FnOnce() -> Result<T>) -> Result<T> {
    caught_within(Some(paced(bounds)), body)
}

/// Receives the thread's result.
struct Slot<T> {
    result: Mutex<Option<Result<T>>>,
    filled: Condvar,
}

/// A thread may exist this many times longer than its time limit, since the machine may be busy.
const WAITED_FACTOR: u32 = 30;
/// Time between two looks at the thread's used time.
const LOOK: Duration = Duration::from_millis(50);

#[cfg(target_os = "linux")]
fn time_of<T>(thread: &std::thread::JoinHandle<T>, _: Duration) -> Duration {
    use std::os::unix::thread::JoinHandleExt;
    let mut clock = 0;
    // SAFETY: the thread was neither joined nor detached; `clock` is writable.
    if unsafe { libc::pthread_getcpuclockid(thread.as_pthread_t(), &mut clock) } != 0 {
        return Duration::ZERO;
    }
    memory::time_on(clock)
}

#[cfg(not(target_os = "linux"))]
fn time_of<T>(_: &std::thread::JoinHandle<T>, waited: Duration) -> Duration {
    waited
}

/// Waits for the thread's result; none if its time is up.
fn wait<T, U>(slot: &Slot<T>, thread: &std::thread::JoinHandle<U>, most: Duration) -> Option<Result<T>> {
    let mut result = slot.result.lock().unwrap_or_else(PoisonError::into_inner);
    let mut waited = Duration::ZERO;
    // A thread that sleeps takes no time, but may not come back either.
    let most_waited = WAITED_FACTOR * most;
    while result.is_none() && !thread.is_finished() && time_of(thread, waited) <= most && waited <= most_waited {
        result = slot.filled.wait_timeout(result, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        waited += LOOK;
    }
    result.take()
}

/// Runs `body` on a thread with a stack of `stack` bytes, within `bounds`, even if it does not allocate. When its time
/// is up the thread is abandoned: it ends by itself, or with the process.
pub fn apart<T: Send + 'static>(
    name: &str,
    stack: usize,
    bounds: Bounds,
    body: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let most = paced(bounds).time;
    let slot = Arc::new(Slot { result: Mutex::new(None), filled: Condvar::new() });
    let shared = slot.clone();
    let builder = std::thread::Builder::new().name(name.to_owned()).stack_size(stack);
    let thread = builder.spawn(move || {
        let result = here(bounds, body);
        *shared.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        shared.filled.notify_one();
    });
    // There is no room for its stack, or there are too many threads.
    let thread = thread.map_err(|e| match e.kind() {
        std::io::ErrorKind::OutOfMemory => Failure::NoMemory,
        _ => Failure::Text(format!("no thread: {e}")),
    })?;
    // A little longer than `bounds`, by which it should have ended itself.
    let result = wait(&slot, &thread, most + 2 * LOOK);
    if result.is_some() || thread.is_finished() {
        let _ = thread.join();
    }
    result.unwrap_or(Err(Failure::Lost(most)))
}
