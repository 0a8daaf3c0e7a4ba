//! Templates of pods: when two are the same, and the hash that names a replica set after one.

use k8s_openapi::api::core::v1::PodTemplateSpec;

/// The label that tells the pods of a deployment's replica sets apart.
pub const HASH_LABEL: &str = "pod-template-hash";

/// Characters that cannot form words, as in all generated names.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Whether two templates are the same but for the hash label.
#[must_use]
pub fn same(one: &PodTemplateSpec, other: &PodTemplateSpec) -> bool {
    if one.spec != other.spec {
        return false;
    }
    let bare = |template: &PodTemplateSpec| {
        let mut meta = template.metadata.clone().unwrap_or_default();
        if let Some(labels) = &mut meta.labels {
            labels.remove(HASH_LABEL);
        }
        meta.labels = meta.labels.filter(|labels| !labels.is_empty());
        meta.annotations = meta.annotations.filter(|annotations| !annotations.is_empty());
        // Stored as null, so it can come back as such.
        meta.creation_timestamp = None;
        meta
    };
    bare(one) == bare(other)
}

/// A short text that differs between templates, and between collision counts of the same template.
#[must_use]
pub fn hash(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    let bytes = serde_json::to_vec(template).unwrap_or_default();
    let tail = collisions.map(i32::to_le_bytes);
    readable(fnv1a(bytes.iter().chain(tail.iter().flatten())))
}

/// FNV-1a of 32 bits.
#[must_use]
pub fn fnv1a<'a>(bytes: impl Iterator<Item = &'a u8>) -> u32 {
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// A number as text in which each digit is replaced by a safe character.
#[must_use]
pub fn readable(number: u32) -> String {
    let digits = number.to_string();
    digits.bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn template(json: serde_json::Value) -> PodTemplateSpec {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn sameness_ignores_the_hash_label_alone() {
        let plain = template(json!({"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "a"}]}}));
        let hashed = template(json!({"metadata": {"labels": {"app": "web", HASH_LABEL: "x"},
            "creationTimestamp": null}, "spec": {"containers": [{"name": "c", "image": "a"}]}}));
        let newer = template(json!({"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "b"}]}}));
        assert!(same(&plain, &hashed));
        assert!(!same(&plain, &newer));
        assert_ne!(hash(&plain, None), hash(&newer, None));
        assert_ne!(hash(&plain, None), hash(&plain, Some(1)));
        assert_eq!(hash(&plain, None), hash(&plain.clone(), None));
        let text = hash(&plain, None);
        assert!(!text.is_empty() && text.bytes().all(|byte| ALPHABET.contains(&byte)), "{text}");
    }

    #[test]
    fn fnv_agrees_with_its_published_vectors() {
        for (text, expected) in [("", 0x811c_9dc5), ("a", 0xe40c_292c), ("foobar", 0xbf9c_f968)] {
            assert_eq!(fnv1a(text.as_bytes().iter()), expected, "{text}");
        }
        assert_eq!(readable(7_890), "cdf4");
    }
}
