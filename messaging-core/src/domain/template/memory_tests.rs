//! Tests of the peak memory of one rendering. Every hostile template is rendered in a process of its own, because the
//! kernel reports a peak per process only.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};

use super::budget::Limits;
use super::compiled::Compiled;
use super::engine::on_large_stack;
use super::values::Values;
use super::{Design, Part};
use crate::domain::channel::Channel;

/// Maximum memory that one rendering may add, in KiB.
const MAX_RESIDENT: u64 = 64 << 10;

/// Environment variable with the index of the case that a child process renders.
const CASE: &str = "MESSAGING_TEST_RENDERING";

struct Case {
    name: &'static str,
    source: String,
    values: fn() -> Json,
}

fn case(name: &'static str, source: impl Into<String>, values: fn() -> Json) -> Case {
    Case { name, source: source.into(), values }
}

/// Returns a text of `kib` KiB that repeats `text`.
fn long(text: &str, kib: usize) -> String {
    text.repeat((kib << 10) / text.len())
}

/// Template source that makes `t`, a text of 4 MiB, from `s`, a text of 512 KiB.
const T4: &str = "{% set t = s ~ s ~ s ~ s %}{% set t = t ~ s ~ s ~ s ~ s %}";

fn cases() -> Vec<Case> {
    let quotes = || json!({"s": long("\"", 512)});
    let deletes = || json!({"s": long("\u{7f}", 512)});
    let many_sets: String = (0..30).map(|i| format!("{{% set v{i} %}}{{{{ s }}}}{{% endset %}}")).collect();
    let raw = long("text ", 1800);
    vec![
        case("escaped captures are kept", many_sets, quotes),
        case("macros keep text", format!("{{% macro m() %}}{raw}{{{{ m() }}}}{{% endmacro %}}{{{{ m() }}}}"), || {
            json!({})
        }),
        case("script", format!("{T4}<script>var a = \"{{{{ t }}}}\";</script>"), quotes),
        case("document", format!("{T4}<iframe srcdoc=\"{{{{ t }}}}\"></iframe>"), quotes),
        case("a list is joined to a text", format!("{T4}{{% set l = [t] %}}{{{{ (l ~ 'a') | length }}}}"), deletes),
        case("list of a text", format!("{T4}{{{{ t | list | length }}}}"), quotes),
        case("split", format!("{T4}{{{{ t | split(',') | length }}}}"), || json!({"s": long(",", 512)})),
        case("lines", format!("{T4}{{{{ t | lines | length }}}}"), || json!({"s": long("\n", 512)})),
        case("tojson", format!("{T4}{{{{ t | tojson | length }}}}"), || json!({"s": long("<", 512)})),
        case("format with widths", "{{ s | format(a=1) | length }}", || json!({"s": long("%(a)999d", 512)})),
        case(
            "format with one value",
            "{{ s | format(a=t) | length }}",
            || json!({"s": long("%(a)s", 16), "t": long("x", 100)}),
        ),
        case("tojson with an indentation", "{{ l | tojson(indent=9000) | length }}", || json!({"l": vec![1; 20_000]})),
        case("floats are joined", "{{ l | join | length }}", || json!({"l": vec![1e308; 80_000]})),
        case("values that are small maps", "{{ l | length }}", || json!({"l": vec![json!({"": 0}); 75_000]})),
        case("a preview with many lists", "{{ l | length }}", || json!({"l": vec![json!([]); 1_000_000]})),
    ]
}

/// Returns the value of a line of `/proc/self/status`, in KiB.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
}

/// Renders one case as a message would be: within `Limits::SHORT`, and if that fails within `Limits::WHOLE`.
fn render_alone(case: &Case) {
    // The values are parsed and not made here, so that no freed memory hides the memory of the rendering.
    let values: Json = serde_json::from_reader(std::io::stdin().lock()).unwrap();
    let given = values.as_object().unwrap();
    let design = Design { html: Some(case.source.clone()), ..Design::default() };
    let compiled: Result<_, Vec<(Part, _)>> = on_large_stack(|| Compiled::of_design(&design, None, Channel::Email));
    let before = memory("VmRSS");
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let outcome = match compiled {
        Err(faults) => format!("not compiled: {faults:?}"),
        Ok(compiled) => {
            let values = Values::new(given);
            let rendering = compiled.render(values.clone(), Limits::SHORT);
            let rendering = if rendering.is_err() { compiled.render(values, Limits::WHOLE) } else { rendering };
            rendering.map_or_else(|(_, fault)| fault.to_string(), |_| "rendered".to_owned())
        }
    };
    let peak = memory("VmHWM").saturating_sub(before);
    std::io::stdout().write_all(format!("\n@{peak} {outcome}\n").as_bytes()).unwrap();
}

/// Renders a case in a process of its own, and returns its peak in KiB and the result.
fn measure(index: usize, values: &Json) -> (u64, String) {
    let module = module_path!().split_once("::").unwrap().1;
    let test = format!("{module}::no_rendering_takes_more_than_its_memory");
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", &test, "--nocapture"]).env(CASE, index.to_string());
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    serde_json::to_writer(std::io::BufWriter::new(child.stdin.take().unwrap()), values).unwrap();
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let line = printed.lines().find_map(|line| line.strip_prefix('@'));
    let Some((peak, outcome)) = line.and_then(|line| line.split_once(' ')) else {
        panic!("the rendering of case {index} did not end: {printed}{}", String::from_utf8_lossy(&output.stderr));
    };
    (peak.parse().unwrap(), outcome.to_owned())
}

#[test]
fn no_rendering_takes_more_than_its_memory() {
    let cases = cases();
    if let Ok(index) = std::env::var(CASE) {
        render_alone(&cases[index.parse::<usize>().unwrap()]);
        return;
    }
    let half = |first: usize| {
        (first..cases.len())
            .step_by(2)
            .map(|index| (index, measure(index, &(cases[index].values)())))
            .collect::<Vec<_>>()
    };
    let mut measured = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        let mut measured = half(0);
        measured.extend(other.join().unwrap());
        measured
    });
    measured.sort_by_key(|(index, _)| *index);
    let mut too_large = Vec::new();
    for (index, (peak, outcome)) in measured {
        if peak > MAX_RESIDENT {
            too_large.push(format!("{}: {peak} KiB, {outcome}", cases[index].name));
        }
    }
    assert!(too_large.is_empty(), "more than {MAX_RESIDENT} KiB: {too_large:#?}");
}
