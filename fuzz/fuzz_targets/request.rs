//! Looks for bytes that break [`annals_fuzz::request`].

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| annals_fuzz::request(input));
