// SPDX-License-Identifier: GPL-2.0-or-later
//! A benchmark of criterion's that measures instructions.

use criterion::measurement::{Measurement, ValueFormatter};
use criterion::{Criterion, Throughput};
use std::io::{Error, Read};
use std::os::unix::io::FromRawFd;
use std::time::Duration;

std::arch::global_asm!(include_str!(env!("KNOWN")), options(att_syntax));

extern "C" {
    fn known();
}

struct Instructions(std::fs::File);

impl Instructions {
    fn new() -> Self {
        // struct perf_event_attr: type and size, config, exclude_kernel and
        // exclude_hv.
        let mut attr = [0u64; 14];
        attr[0] = 112 << 32;
        attr[1] = 1;
        attr[5] = 0x60;
        let fd = unsafe {
            let call = libc::SYS_perf_event_open;
            libc::syscall(call, attr.as_ptr(), 0, -1, -1, 0)
        };
        assert!(fd >= 0, "perf_event_open: {}", Error::last_os_error());
        Instructions(unsafe { FromRawFd::from_raw_fd(fd as i32) })
    }
}

impl Measurement for Instructions {
    type Intermediate = u64;
    type Value = u64;

    fn start(&self) -> u64 {
        let mut count = [0; 8];
        (&self.0).read_exact(&mut count).unwrap();
        u64::from_ne_bytes(count)
    }

    fn end(&self, before: u64) -> u64 {
        self.start() - before
    }

    fn add(&self, one: &u64, other: &u64) -> u64 {
        one + other
    }

    fn zero(&self) -> u64 {
        0
    }

    fn to_f64(&self, count: &u64) -> f64 {
        *count as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        self
    }
}

impl ValueFormatter for Instructions {
    fn scale_values(&self, _: f64, _: &mut [f64]) -> &'static str {
        "instructions"
    }

    fn scale_throughputs(
        &self,
        _: f64,
        _: &Throughput,
        _: &mut [f64],
    ) -> &'static str {
        "instructions"
    }

    fn scale_for_machines(&self, _: &mut [f64]) -> &'static str {
        "instructions"
    }
}

fn main() {
    // What criterion repeats to tell noise from change is not needed here.
    let mut criterion = Criterion::default()
        .with_measurement(Instructions::new())
        .sample_size(10)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_millis(100))
        .nresamples(1000)
        .without_plots();
    criterion.bench_function("known", |b| b.iter(|| unsafe { known() }));
}
