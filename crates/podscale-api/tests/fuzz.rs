//! Fuzz targets: no bytes from outside may cause a panic, and what is understood must survive being
//! written and read again. As plain tests they run on random input for a second each;
//! docs/development.md says how to run them for longer with coverage guidance.

use bolero::check;
use podscale_api::recording::{AnyRecording, Line, Recording, RecordingReader, RecordingWriter};
use podscale_api::replay::Replayer;
use podscale_api::replay::jobs::JobsReplayer;
use podscale_api::selector::LabelSelector;
use podscale_api::{Quantity, Selector};

#[test]
fn fuzz_quantity() {
    check!().with_type::<(u8, i64, Vec<u8>)>().for_each(|(shape, number, bytes)| {
        // Random bytes are hardly ever a number, so most inputs are put together from parts.
        const SUFFIXES: [&str; 16] =
            ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Ti", "Ei", "e3", "E-2"];
        let free = String::from_utf8_lossy(bytes);
        let suffix = SUFFIXES[usize::from(*shape) % SUFFIXES.len()];
        let texts =
            [free.to_string(), format!("{number}{suffix}"), format!("{number}.{free}{suffix}")];
        for text in texts {
            let Ok(quantity) = Quantity::parse(&text) else { continue };
            let (milli, value) = (quantity.milli_value(), quantity.value());
            let size = quantity.as_approximate_f64().abs();
            let written = quantity.to_string();
            let again = Quantity::parse(&written).expect("what was written can be read");
            // Kubernetes loses the suffix of what it prints from 1000E on, and rounds long numbers
            // differently by their spelling.
            if size < 9e20 {
                assert_eq!(again, quantity, "{text}");
                assert_eq!(again.to_string(), written, "{text}");
            }
            if text.len() <= 16 && written.len() <= 16 {
                assert_eq!((again.milli_value(), again.value()), (milli, value), "{text}");
            }
        }
    });
}

#[test]
fn fuzz_selector() {
    check!().with_type::<(u8, Vec<u8>)>().for_each(|(shape, bytes)| {
        let free = String::from_utf8_lossy(bytes);
        let words: Vec<String> = bytes.iter().map(|b| format!("k{}", b % 5)).collect();
        let list = words.join(",");
        let made = match shape % 6 {
            0 => format!("a in ({list})"),
            1 => format!("a notin ({list}),b"),
            2 => format!("!a,{list}"),
            3 => format!("a={},b!={}", words.len(), list),
            4 => format!("a>{}", words.len()),
            _ => format!("{list} {free}"),
        };
        for text in [free.to_string(), made] {
            let Ok(selector) = Selector::parse(&text) else { continue };
            let written = selector.to_string();
            let again = Selector::parse(&written).expect("what was written can be read");
            assert_eq!(again.to_string(), written, "{text}");
            for label in [None, Some(""), Some("k1"), Some("3")] {
                assert_eq!(again.matches(|_| label), selector.matches(|_| label), "{text}");
            }
        }
        if let Ok(object) = serde_json::from_slice::<LabelSelector>(bytes) {
            let _ = (object.to_selector(), LabelSelector::go_string(Some(&object)));
        }
    });
}

#[test]
fn fuzz_recording() {
    let seeds = seeds();
    check!().with_type::<(u16, Vec<(u32, u8)>)>().for_each(|(seed, edits)| {
        // A real recording with a few bytes changed gets much further than noise.
        let mut bytes = seeds[usize::from(*seed) % seeds.len()].clone();
        for (place, byte) in edits {
            let length = bytes.len() as u32;
            bytes[(place % length) as usize] = *byte;
        }
        let noise: Vec<u8> = edits.iter().map(|(_, byte)| *byte).collect();
        read_all(&noise);
        read_all(&bytes);
        let line = Line { number: 1, bytes };
        let recording = match line.parse_any() {
            Ok(AnyRecording::Scale(recording)) => *recording,
            Ok(AnyRecording::Jobs(recording)) => {
                let mut replayer = JobsReplayer::new(&recording);
                recording.steps.iter().for_each(|step| drop(replayer.step(step)));
                return;
            }
            Err(_) => return,
        };
        let mut replayer = Replayer::new(&recording);
        for step in &recording.steps {
            let _ = replayer.step(step, |replayed| replayed.outcome);
        }
        let mut writer = RecordingWriter::plain(Vec::new());
        writer.write(&recording).expect("memory takes it");
        let written = writer.finish().expect("memory takes it");
        let again = read_all(&written).into_iter().next().expect("one recording");
        assert_eq!(again, recording);
    });
}

fn seeds() -> Vec<Vec<u8>> {
    let all = include_bytes!("../testdata/named-1.37.jsonl");
    all.split(|b| *b == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
}

fn read_all(bytes: &[u8]) -> Vec<Recording> {
    let reader = RecordingReader::new(bytes).expect("memory can be read");
    reader.with_max_line_bytes(1 << 20).filter_map(Result::ok).collect()
}
