//! The engine of engine.c in Rust, without any crate; a real engine would read JSON with serde_json.
//!     rustc -O engine.rs && tenferro-ref check PROGRAM --executors external-served:./engine
use std::io::{self, BufRead, Write};

const ONE: &str = r#""instructions":[{"op":"Negate","attrs":{},"inputs":[0],"outputs":[1]}],"outputs":[1]}"#;
const INPUT: &str = r#""inputs":[{"dtype":"F64","shape":"#;
const DATA: &str = r#","data":""#;

/// The little-endian bytes of the elements as hexadecimal digits, negated.
fn negated(data: &str) -> Option<String> {
    let mut out = String::with_capacity(data.len());
    for element in data.as_bytes().chunks(16) {
        let digits = std::str::from_utf8(element).ok()?;
        let bits = u64::from_str_radix(digits, 16).ok()?.swap_bytes();
        let value = -f64::from_bits(bits);
        out.push_str(&format!("{:016x}", value.to_bits().swap_bytes()));
    }
    Some(out)
}

/// The answer to a program, if it is one that this engine has.
fn answer(line: &str) -> Option<String> {
    line.find(ONE)?;
    let tensor = &line[line.find(INPUT)? + INPUT.len()..];
    let (shape, rest) = tensor.split_once(DATA)?;
    let data = negated(&rest[..rest.find('"')?])?;
    Some(format!(r#"{{"outputs":[{{"dtype":"F64","shape":{shape},"data":"{data}"}}]}}"#))
}

fn main() -> io::Result<()> {
    let refusal = r#"{"error":{"kind":"UnsupportedOp","op":"program","reason":"only Negate of F64","message":"no"}}"#;
    let (stdin, mut stdout) = (io::stdin(), io::stdout());
    for line in stdin.lock().lines() {
        let reply = answer(&line?).unwrap_or_else(|| refusal.to_string());
        writeln!(stdout, "{reply}")?;
        stdout.flush()?;
    }
    Ok(())
}
