//! Ownership.
