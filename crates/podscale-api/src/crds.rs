//! The definitions of the custom resources that Podscale knows, one file each. Installing them is the
//! choice of whoever runs a cluster; nothing else depends on them.

pub mod chpa;
