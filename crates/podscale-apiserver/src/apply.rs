//! Who owns which field: server-side apply, and the record of who wrote what.

pub mod field_set;
mod managers;
mod merge;
mod shape;

#[cfg(test)]
mod tests;

pub use field_set::FieldSet;
pub(crate) use managers::blank;
pub use managers::{ApplyRequest, Managers, UpdateRequest, Writer, track_apply, track_update};
pub use shape::Shape;
