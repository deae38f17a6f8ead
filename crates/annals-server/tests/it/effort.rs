//! How much a test tries.

/// True if everything is tried: `ANNALS_TEST_EFFORT=full`.
pub(crate) fn is_full() -> bool {
    std::env::var("ANNALS_TEST_EFFORT").is_ok_and(|effort| effort == "full")
}

/// Returns a number of tries.
pub(crate) fn tries<N>(usual: N, full: N) -> N {
    if is_full() { full } else { usual }
}
