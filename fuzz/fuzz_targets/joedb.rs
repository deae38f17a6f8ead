//! Looks for bytes that break [`annals_fuzz::joedb`].

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| annals_fuzz::joedb(input));
