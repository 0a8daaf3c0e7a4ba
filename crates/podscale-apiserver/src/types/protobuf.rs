//! Kubernetes' protobuf form, which typed clients speak by default: to and from JSON.

mod read;
mod scalars;
mod write;

#[cfg(test)]
mod tests;

pub use read::{decode, open};
pub(crate) use write::Writer;
pub use write::{enclose, encode};

/// What every object in protobuf starts with.
const MAGIC: &[u8] = b"k8s\0";
/// Messages nested deeper than this are refused.
const MAX_DEPTH: usize = 100;

/// Why bytes are no object, or an object has no protobuf form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// There are none.
    #[error("empty data")]
    Empty,
    /// They do not start as objects do.
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    Magic,
    /// Nothing follows the start.
    #[error("empty body")]
    EmptyBody,
    /// They end too early.
    #[error("unexpected EOF")]
    End,
    /// A number does not fit into 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A field is encoded in a way that protobuf does not know.
    #[error("proto: illegal wireType {0}")]
    IllegalWire(u8),
    /// A field has a form that its type cannot have.
    #[error("proto: wrong wireType = {wire} for field {field}")]
    Wire {
        /// Kind of encoding.
        wire: u8,
        /// Name of the field.
        field: String,
    },
    /// Messages are nested without end.
    #[error("proto: too deeply nested")]
    Depth,
    /// A text is not UTF-8.
    #[error("proto: invalid UTF-8")]
    Text,
    /// A time that JSON cannot show.
    #[error("Time.MarshalJSON: year outside of range [0,9999]")]
    Year,
    /// A quantity that is none.
    #[error("{0}")]
    Quantity(String),
    /// Embedded JSON that is none.
    #[error("embedded JSON cannot be read: {0}")]
    Json(String),
    /// A value that is not of its type.
    #[error("{value} is no {ty}")]
    Value {
        /// The value.
        value: String,
        /// What it should have been.
        ty: &'static str,
    },
    /// A kind without a protobuf form.
    #[error(
        "object *{0} does not implement the protobuf marshalling interface and cannot be encoded \
         to a protobuf message"
    )]
    NoForm(String),
}

/// The envelope around an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// The object itself.
    pub raw: &'a [u8],
}
