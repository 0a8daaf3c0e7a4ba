//! The tables in `testdata` were printed by Kubernetes' own quantity code.

use super::*;
use proptest::prelude::*;

fn columns(line: &str) -> Vec<&str> {
    line.split('\t').collect()
}

fn unquote(text: &str) -> String {
    serde_json::from_str(text).expect("quoted as JSON")
}

fn format_name(format: Format) -> &'static str {
    match format {
        Format::DecimalSi => "DecimalSI",
        Format::BinarySi => "BinarySI",
        Format::DecimalExponent => "DecimalExponent",
    }
}

fn float_bits(number: f64) -> String {
    if number.is_nan() { "nan".into() } else { format!("{:016x}", number.to_bits()) }
}

fn described(text: &str) -> String {
    let quantity = match Quantity::parse(text) {
        Ok(quantity) => quantity,
        Err(ParseQuantityError::Format) => return "!format".into(),
        Err(ParseQuantityError::Numeric) => return "!numeric".into(),
        Err(ParseQuantityError::Suffix) => return "!suffix".into(),
        Err(ParseQuantityError::TooLong) => return "!long".into(),
    };
    format!(
        "{quantity}\t{}\t{}\t{}\t{}\t{}",
        format_name(quantity.format()),
        quantity.milli_value(),
        quantity.value(),
        float_bits(quantity.as_approximate_f64()),
        quantity.sign() as i32,
    )
}

fn described_pair(a: &str, b: &str) -> String {
    let (a, b) = (Quantity::parse(a).expect("valid"), Quantity::parse(b).expect("valid"));
    let mut sum = a.clone();
    sum.add(&b);
    format!(
        "{}\t{sum}\t{}\t{}\t{}\t{}",
        a.cmp(&b) as i32,
        format_name(sum.format()),
        sum.milli_value(),
        sum.value(),
        float_bits(sum.as_approximate_f64()),
    )
}

fn check_tables(singles: &str, pairs: &str) {
    for line in singles.lines() {
        let (text, expected) = line.split_once('\t').expect("two columns");
        assert_eq!(described(&unquote(text)), expected, "{text}");
    }
    for line in pairs.lines() {
        let columns = columns(line);
        let (a, b) = (unquote(columns[0]), unquote(columns[1]));
        assert_eq!(described_pair(&a, &b), columns[2..].join("\t"), "{a} and {b}");
    }
}

#[test]
fn agrees_with_upstream() {
    check_tables(
        include_str!("../../testdata/quantities.tsv"),
        include_str!("../../testdata/quantity-pairs.tsv"),
    );
}

#[test]
fn integers_print_as_upstream() {
    for line in include_str!("../../testdata/quantity-integers.tsv").lines() {
        let columns = columns(line);
        let number = columns[0].parse().expect("an integer");
        let formats = [Format::DecimalSi, Format::BinarySi, Format::DecimalExponent];
        let printed = formats.map(|format| {
            let (milli, whole) =
                (Quantity::from_milli(number, format), Quantity::from_value(number, format));
            format!("{milli}\t{whole}")
        });
        assert_eq!(printed.join("\t"), columns[1..].join("\t"), "{number}");
    }
}

#[test]
#[ignore = "needs QUANTITY_TABLES=singles.tsv,pairs.tsv, more rows of the same form"]
fn agrees_with_upstream_on_given_tables() {
    let Ok(paths) = std::env::var("QUANTITY_TABLES") else {
        return;
    };
    let (singles, pairs) = paths.split_once(',').expect("two paths");
    let read = |path| std::fs::read_to_string(path).expect("readable");
    check_tables(&read(singles), &read(pairs));
}

#[test]
fn absurd_lengths_end_quickly() {
    let long = "9".repeat(1_000_000);
    assert_eq!(described(&long), "!long");
    assert_eq!(described("1234567890123456789e2147483647"), "!long");
    assert_eq!(described(&format!("{long}Ki")), described("9Ei"));
    assert_eq!(Quantity::parse(&format!("0.{long}")), Quantity::parse("1"));
    assert_eq!(Quantity::parse("12345678901234567890e-2000000000"), Quantity::parse("1n"));

    let mut far = Quantity::parse("1e2000000000").expect("valid");
    far.add(&Quantity::from_value(1, Format::DecimalSi));
    assert_eq!(far.to_string(), "100e1999999998");
    assert!(far > Quantity::parse("1e1999999999").expect("valid"));
    assert!(far < Quantity::parse("1e2000000001").expect("valid"));
}

#[test]
fn json_takes_strings_and_numbers() {
    for (json, text) in [
        (r#""250m""#, "250m"),
        (r#"" 1.5Gi ""#, "1536Mi"),
        ("3", "3"),
        ("-7", "-7"),
        ("0.1", "100m"),
        ("1e30", "1e30"),
        ("18446744073709551615", "18446744073709551615"),
        ("null", "0"),
    ] {
        let quantity: Quantity = serde_json::from_str(json).expect(json);
        assert_eq!(serde_json::to_string(&quantity).expect(json), format!("\"{text}\""));
    }
    for (json, error) in [
        (r#""x""#, "quantities must match the regular expression"),
        (r#""1x""#, "quantities must match the regular expression"),
        (r#""1Mm""#, "unable to parse quantity's suffix"),
        ("true", "expected a quantity such as 250m or 1Gi"),
    ] {
        let result = serde_json::from_str::<Quantity>(json).expect_err(json).to_string();
        assert!(result.contains(error), "{json}: {result}");
    }
}

#[test]
fn stays_small() {
    assert_eq!(size_of::<Quantity>(), 16);
}

fn quantity_text() -> impl Strategy<Value = String> {
    "[+-]?[0-9]{0,22}(\\.[0-9]{0,14})?(n|u|m||k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]{1,3})"
}

proptest! {
    #[test]
    fn any_text_ends(text in "\\PC{0,40}") {
        if let Ok(quantity) = Quantity::parse(&text) {
            let _ = (quantity.to_string(), quantity.milli_value(), quantity.as_approximate_f64());
        }
    }

    #[test]
    fn printing_keeps_the_value(text in quantity_text()) {
        let Ok(quantity) = Quantity::parse(&text) else { return Ok(()) };
        // Beyond the largest suffix the exponent is lost, as upstream loses it, on either side of zero.
        let [below, above] = ["-1000E", "1000E"].map(|text| Quantity::parse(text).expect("valid"));
        let is_beyond = quantity <= below || quantity >= above;
        if quantity.format() == Format::DecimalSi && is_beyond { return Ok(()) }
        let again = Quantity::parse(&quantity.to_string()).expect("printed quantities parse");
        prop_assert_eq!(&again, &quantity);
        prop_assert_eq!(again.to_string(), quantity.to_string());
    }

    #[test]
    fn order_is_total(a in quantity_text(), b in quantity_text(), c in quantity_text()) {
        let parsed: Result<Vec<_>, _> = [a, b, c].iter().map(|text| Quantity::parse(text)).collect();
        let Ok(mut all) = parsed else { return Ok(()) };
        all.sort();
        prop_assert!(all[0] <= all[1] && all[1] <= all[2] && all[0] <= all[2]);
        prop_assert_eq!(all[0].cmp(&all[1]), all[1].cmp(&all[0]).reverse());
    }

    #[test]
    fn milli_round_trips(milli in any::<i64>(), binary in any::<bool>()) {
        let format = if binary { Format::BinarySi } else { Format::DecimalSi };
        let quantity = Quantity::from_milli(milli, format);
        prop_assert_eq!(quantity.milli_value(), milli);
        prop_assert_eq!(Quantity::parse(&quantity.to_string()).expect("valid"), quantity);
    }
}
