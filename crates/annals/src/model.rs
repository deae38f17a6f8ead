//! What schemas and values are made of besides their usual types, and the errors of their texts.

pub use crate::db::MomentError;
pub use annals_schema::{
    AnyDecimal, Collated, DateError, DecimalError, OnDelete, TimeRangeError, TimestampError,
    TypeClass, UuidError, Variant, Variants, WideValue, Written,
};
