//! Spans and events of the feature `tracing`, whose target is `annals`. Without the feature they are no code.
//!
//! They have names of files, numbers and durations, and never values of rows: of an error only its kind.

/// Enters a span up to the end of the block.
macro_rules! span {
    ($level:ident, $name:literal $(, $field:ident = $value:expr)*) => {
        #[cfg(feature = "tracing")]
        let _span =
            ::tracing::span!(target: "annals", ::tracing::Level::$level, $name, $($field = $value),*)
                .entered();
        #[cfg(not(feature = "tracing"))]
        let _ = || {
            $(let _ = &$value;)*
        };
    };
}

/// Records an event.
macro_rules! event {
    ($level:ident, $message:literal $(, $field:ident = $value:expr)*) => {{
        #[cfg(feature = "tracing")]
        ::tracing::event!(
            target: "annals",
            ::tracing::Level::$level,
            $($field = $value,)*
            $message
        );
        #[cfg(not(feature = "tracing"))]
        let _ = || {
            $(let _ = &$value;)*
        };
    }};
}

pub(crate) use {event, span};
