//! Changes that the server makes to stored objects by itself.

use serde_json::Value;

use crate::resource::GroupResource;
use crate::server::Inner;
use crate::store::Draft;

/// How often an object is changed again when someone else was faster.
const TRIES: usize = 10;

/// Changes a cluster-wide object that no field selector asks for, such as the status of a definition.
pub(crate) fn revise(
    server: &Inner,
    resource: &GroupResource,
    name: &str,
    edit: impl Fn(&mut Value),
) {
    for _ in 0..TRIES {
        let Some(found) = server.store.get(resource, name) else { return };
        let old = found.value();
        let mut new = old.clone();
        edit(&mut new);
        if new == old {
            return;
        }
        let draft = Draft { value: new, fields: Vec::new() };
        if server.store.replace(resource, name, found.revision, draft).is_ok() {
            return;
        }
    }
}
