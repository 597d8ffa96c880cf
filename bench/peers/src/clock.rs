//! CPU time of threads, and what is alive on glibc's heap.

use std::time::Duration;

fn read(clock: libc::clockid_t) -> Duration {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `t` is a valid timespec to write to.
    let failed = unsafe { libc::clock_gettime(clock, &mut t) };
    assert_eq!(failed, 0, "clock {clock} cannot be read");
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// CPU time of the calling thread.
pub fn thread() -> Duration {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The calling thread's clock, for other threads to read while it lives.
#[derive(Clone, Copy)]
pub struct ThreadClock(libc::clockid_t);

impl ThreadClock {
    pub fn mine() -> Self {
        let mut clock = 0;
        // SAFETY: the thread asks for itself, and `clock` is there to write to.
        let failed = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) };
        assert_eq!(failed, 0, "the thread has no CPU clock");
        ThreadClock(clock)
    }

    pub fn read(self) -> Duration {
        read(self.0)
    }
}

/// Times short calls on the calling thread, less what reading the clock costs.
pub struct Stopwatch {
    empty: Duration,
}

impl Stopwatch {
    pub fn new() -> Self {
        let pair = || {
            let t = thread();
            thread() - t
        };
        Stopwatch {
            empty: (0..2000).map(|_| pair()).min().unwrap(),
        }
    }

    pub fn time(&self, f: impl FnOnce()) -> Duration {
        let t = thread();
        f();
        (thread() - t).saturating_sub(self.empty)
    }
}

#[derive(Default)]
pub struct Samples(pub Vec<Duration>);

impl Samples {
    /// A quantile in µs.
    pub fn micros(&mut self, q: f64) -> f64 {
        self.0.sort_unstable();
        self.0[(q * (self.0.len() - 1) as f64) as usize].as_nanos() as f64 / 1e3
    }
}

/// Bytes handed out by malloc and not freed, all arenas and mappings together.
pub fn heap() -> usize {
    // SAFETY: mallinfo2 only reads the allocator's counters.
    let m = unsafe { libc::mallinfo2() };
    m.uordblks + m.hblkhd
}
