//! The generator.
/// x
pub fn generate() {}
/// x
pub fn generate_module() {}
/// x
pub fn module_name() {}
