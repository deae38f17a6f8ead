//! What schemas and values are made of besides their usual types, the errors of their texts, and what a check of a
//! commit returns.

pub use crate::db::{Checked, MomentError};
pub use annals_schema::{
    AnyDecimal, Collated, DateError, DecimalError, OnDelete, TimeRangeError, TimestampError,
    TypeClass, UuidError, Variant, Variants, WideValue, Written,
};
