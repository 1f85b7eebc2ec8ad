use minijinja::Value;
use minijinja::value::Serde;
use serde_json::{Value as Json, json};

use super::budget::Limits;
use super::engine::{Kind, Program, RenderFault, on_large_stack};
use super::fault::Fault;

fn compile(source: &str, kind: Kind) -> Result<Program, Fault> {
    on_large_stack(|| Program::compile(source, kind))
}

fn render(source: &str, kind: Kind, values: &Json) -> Result<String, RenderFault> {
    let program = compile(source, kind).map_err(RenderFault::Failed)?;
    program.render(&Value::from(Serde(values)), Limits::WHOLE)
}

#[track_caller]
fn check(source: &str, values: Json, expected: &str) {
    match render(source, Kind::Markup, &values) {
        Ok(found) => assert_eq!(found, expected, "{source}"),
        Err(fault) => panic!("{source}: {fault}"),
    }
}

#[test]
fn no_text_that_is_made_holds_u0000() {
    for source in [r#"{{ "a\u0000" }}"#, r#"{{ "\u0000"[0] ~ x }}"#] {
        let fault = render(source, Kind::Plain, &json!({"x": 1})).unwrap_err();
        assert!(fault.to_string().contains("U+0000"), "{source}: {fault}");
    }
    check(r#"{{ "a\\u0000" }}"#, json!({}), r"a\u0000");
}

#[test]
fn the_language_is_that_of_the_engine() {
    check("<p>Hi {{ name }}</p>", json!({"name": "Ann"}), "<p>Hi Ann</p>");
    check("{{ a.b.c }}|{{ missing }}|{{ a.b.c.d }}", json!({"a": {}}), "||");
    check("{{ x | default('there') }}", json!({}), "there");
    check("{{ x | default('there') }}", json!({"x": null}), "there");
    check("{{ x | default(default_value='y') }}{{ '' | default('z', true) }}", json!({}), "yz");
    check("{{ x | safe }}", json!({"x": "<b>"}), "<b>");
    check("{{ a }} {{ b }} {{ n }}", json!({"a": true, "b": false, "n": null}), "true false ");
    check("{{ 1.5 }} {{ 10 }} {{ p * q }}", json!({"p": 3, "q": 2.5}), "1.5 10 7.5");
    check("{{ a * -b + c * (d - 1) * 2 }}", json!({"a": 2, "b": 3, "c": 4, "d": 6}), "34");
    check(
        "{% for i in items %}{{ loop.index }}:{{ i.name }};{% endfor %}",
        json!({"items": [{"name": "a"}, {"name": "b"}]}),
        "1:a;2:b;",
    );
    check("{% for k, v in m|items %}{{ k }}={{ v }};{% endfor %}", json!({"m": {"a": 1, "b": 2}}), "a=1;b=2;");
    check("{% for i in items if i > 1 %}{{ i }}{% else %}none{% endfor %}", json!({"items": [1, 2, 3]}), "23");
    check("{% for i in missing %}x{% else %}none{% endfor %}", json!({}), "none");
    check("{% if a == 'x' and b not in [1, 2] %}y{% elif c %}z{% else %}n{% endif %}", json!({"a": "x", "b": 3}), "y");
    check("{% if 1 < a <= 3 %}y{% endif %}", json!({"a": 3}), "y");
    check("{{ 'a' ~ b ~ 1 }} {{ 'a' + b }}", json!({"b": "c"}), "ac1 ac");
    check(
        "{{ name[:3] }} {{ name[0] }} {{ list[1:][0] }} {{ list.1 }} {{ list[-1] }}",
        json!({"name": "Annabel", "list": [1, 2, 3]}),
        "Ann A 2 2 3",
    );
    check("{{ ('a' ~ name)[1:3] }} {{ (list + [4])[3] }}", json!({"name": "Bo", "list": [1, 2, 3]}), "Bo 4");
    check("{{ [1, 2, [3, 4]][2][1] }} {{ {'a': {'b': 5}}.a.b }} {{ (1, 2)[1] }}", json!({}), "4 5 2");
    check("{% set x = 3 %}{{ x }}{% set y %}<b>{{ x }}</b>{% endset %}{{ y }}", json!({}), "3<b>3</b>");
    check(
        "{% set ns = namespace(total=0) %}{% for i in [1,2,3] %}{% set ns.total = ns.total + i * 2 %}{% endfor %}{{ ns.total }}",
        json!({}),
        "12",
    );
    check(
        "{% macro b(text, url='#') %}<a href=\"{{ url }}\">{{ text }}</a>{% endmacro %}{{ b('x') }}{{ b(url='/y', text='&') }}",
        json!({}),
        "<a href=\"#\">x</a><a href=\"/y\">&amp;</a>",
    );
    check("{% macro w() %}[{{ caller() }}]{% endmacro %}{% call w() %}in{% endcall %}", json!({}), "[in]");
    check("{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}", json!({}), "3");
    check("{% filter upper %}a{{ x }}{% endfilter %}", json!({"x": "b"}), "AB");
    check(
        "{{ items | map(attribute='p') | sum }} {{ items | selectattr('p', 'gt', 1) | list | length }}",
        json!({"items": [{"p": 1}, {"p": 2}]}),
        "3 1",
    );
    check(
        "{{ items | join(', ') }} {{ 'a-b' | split('-') | last }} {{ 'x' | upper | lower }}",
        json!({"items": ["a", "<"]}),
        "a, &lt; b x",
    );
    check(
        "{{ 3.14159 | round(2) }} {{ '%05.2f' | format(3.14159) }} {{ 'a b' | urlencode }}",
        json!({}),
        "3.14 03.14 a%20b",
    );
    check("{{ items | batch(2) | list | length }} {{ range(3) | list }}", json!({"items": [1, 2, 3]}), "2 [0, 1, 2]");
    check("{{ a if b else c }} {{ 'no' if not b }}", json!({"a": 1, "c": 2}), "2 no");
    check(
        "{{ x is defined }} {{ y is defined }} {{ x is not none and x is string }} {{ 4 is divisibleby 2 }}",
        json!({"x": "a"}),
        "true false true true",
    );
    check("{%- for i in [1, 2] -%}  {{ i }}  {%- endfor -%}  .", json!({}), "12.");
    check("{% raw %}{{ x }}{% endraw %}{# no #}", json!({}), "{{ x }}");
    check("{{ dict(a=1).a }} {{ loop }}", json!({}), "1 ");
    check(
        "{{ user['first name'] }} {{ user.tags | length }} {{ user.tags[0] }}",
        json!({"user": {"first name": "A", "tags": ["t"]}}),
        "A 1 t",
    );
    check("{{ -a }} {{ - b.c[0] }} {{ not a }} {{ -3 | abs }}", json!({"a": 5, "b": {"c": [1]}}), "-5 -1 false 3");
}

#[track_caller]
fn refused(source: &str, position: (usize, usize)) {
    match compile(source, Kind::Markup) {
        Ok(_) => panic!("{source} is not refused"),
        Err(fault) => {
            let found = fault.position.map(|at| (at.line, at.column));
            assert_eq!(found, Some(position), "{source}: {fault}");
        }
    }
}

#[test]
fn what_is_broken_is_found_where_it_stands() {
    refused("<p>\n  {{ name }", (2, 11));
    refused("{% if a %}\n{% for x in y %}\n{% endif %}", (3, 4));
    refused("é {{ x | nosuch }}", (1, 10));
    refused("{{ x is nosuch }}", (1, 9));
    refused("a\n{% include 'x' %}", (2, 4));
    refused("{% extends 'x' %}", (1, 4));
    refused("{% import 'x' as y %}", (1, 4));
    refused("{% from 'x' import y %}", (1, 4));
    refused("{% block x %}{% endblock %}", (1, 4));
    refused("{% nosuch %}", (1, 4));
    refused("{{ 1 + }}", (1, 8));
    refused("{{ _guard_made }}", (1, 4));
}

/// Renders a hostile value in every kind of place.
#[test]
fn values_stay_values_wherever_they_stand() {
    let hostile = [
        "<script>alert(1)</script>",
        "\" onmouseover=\"alert(1)",
        "' onload='alert(1)",
        "x onclick=alert(1)",
        "</style><script>alert(1)</script>",
        "--><script>",
        "javascript:alert(1)",
        "');alert(1);//",
        "</script><script>alert(1)</script>",
        "&lt;script&gt;",
        "`onerror=alert(1)",
    ];
    let places = [
        "<p>{{ x }}</p>",
        "<p title=\"{{ x }}\">t</p>",
        "<p title='{{ x }}'>t</p>",
        "<p title={{ x }}>t</p>",
        "<p title=a{{ x }}>t</p>",
        "<p {{ x }}>t</p>",
        "<a href=\"{{ x }}\">t</a>",
        "<a href='  {{ x }}'>t</a>",
        "<a href={{ x }}>t</a>",
        "<a href=\"https://a.example/?q={{ x }}\">t</a>",
        "<img src=\"{{ x }}\" alt=\"\">",
        "<!-- {{ x }} -->",
        "<style>a{color:{{ x }}}</style>",
        "<script>var a = \"{{ x }}\";</script>",
        "<a onclick=\"f('{{ x }}')\">t</a>",
        "<textarea>{{ x }}</textarea>",
        "<title>{{ x }}</title>",
        "{% if x %}<b class=\"{% if x %}{{ x }}{% endif %}\">{{ x ~ '' }}</b>{% endif %}",
    ];
    for place in places {
        let harmless = shape(&render(place, Kind::Markup, &json!({"x": "harmless"})).unwrap());
        for value in hostile {
            let html = render(place, Kind::Markup, &json!({"x": value})).unwrap();
            let found = shape(&html);
            // A value between attributes may become an attribute, but none with a meaning.
            let found: Vec<_> =
                found.into_iter().filter(|part| !part.starts_with("@x&#") && !part.contains("&#")).collect();
            let harmless: Vec<_> = harmless.iter().filter(|part| *part != "@harmless").cloned().collect();
            let found: Vec<_> = found.into_iter().filter(|part| part != "@javascript:alert" && part != "@#").collect();
            assert_eq!(found, harmless, "{place} with {value} became {html}");
            assert!(!href_runs_scripts(&html), "{place} with {value} became {html}");
            if place.contains("script") || place.contains("onclick") {
                let text = html.replace("</script>", "").replace("<script>", "");
                assert!(!text.contains("');") || !value.contains("');"), "{html}");
            }
        }
    }
    for value in hostile {
        assert_eq!(render("a {{ x }} b", Kind::Plain, &json!({"x": value})).unwrap(), format!("a {value} b"));
    }
}

/// Renders the parts of `javascript:` in every place where it could come in. Each row would run a script if its values
/// were only escaped.
#[test]
fn no_place_lets_a_script_in() {
    let rows = [
        // Several expressions in one attribute, with the author's text between them.
        ("<a href=\"{{ a }}{{ b }}\">t</a>", "java", "script:alert(1)"),
        ("<a href=\"{{ a }}:{{ b }}\">t</a>", "javascript", "alert(1)"),
        ("<a href='{{ a }}&colon;{{ b }}'>t</a>", "javascript", "alert(1)"),
        ("<a href='{{ a }}&#x3a;{{ b }}'>t</a>", "javascript", "alert(1)"),
        ("<a href=\"java{{ a }}:{{ b }}\">t</a>", "script", "alert(1)"),
        ("<a href=\"java{{ a }}{{ b }}\">t</a>", "script", ":alert(1)"),
        ("<a href=\" {{ a }}&#9;{{ b }}\">t</a>", "java", "script:alert(1)"),
        ("<a href={{ a }}{{ b }}>t</a>", "java", "script:alert(1)"),
        ("<a href={{ a }}:{{ b }}>t</a>", "javascript", "alert(1)"),
        ("<a href = \"{{ a }}\">t</a>", "javascript:alert(1)", ""),
        // Branches and loops.
        ("<a href=\"{% if b %}https://a.example/{% endif %}{{ a }}\">t</a>", "javascript:alert(1)", ""),
        ("<a href=\"{% if b %}x/{% else %}{{ a }}{% endif %}\">t</a>", "javascript:alert(1)", ""),
        ("<a href=\"{% for c in a %}{{ c }}{% endfor %}\">t</a>", "javascript:alert(1)", ""),
        // Results of macros and blocks, which count as escaped already.
        ("{% macro m(u) %}{{ u }}{% endmacro %}<a href=\"{{ m(a) }}\">t</a>", "javascript:alert(1)", ""),
        ("{% macro m(u) %}<a href=\"{{ u }}\">t</a>{% endmacro %}{{ m(a) }}", "javascript:alert(1)", ""),
        ("{% set u %}{{ a }}{{ b }}{% endset %}<a href=\"{{ u }}\">t</a>", "java", "script:alert(1)"),
        ("{% set u = a ~ b %}<a href=\"{{ u }}\">t</a>", "java", "script:alert(1)"),
        // Every attribute with an address.
        ("<object data=\"{{ a }}\"></object>", "javascript:alert(1)", ""),
        ("<embed src=\"{{ a }}\">", "javascript:alert(1)", ""),
        ("<form action=\"{{ a }}\"></form>", "javascript:alert(1)", ""),
        ("<button formaction=\"{{ a }}\">t</button>", "javascript:alert(1)", ""),
        ("<input type=\"submit\" formaction=\"{{ a }}\">", "javascript:alert(1)", ""),
        ("<svg><a xlink:href=\"{{ a }}\">t</a></svg>", "javascript:alert(1)", ""),
        ("<svg><a href=\"{{ a }}\">t</a></svg>", "javascript:alert(1)", ""),
        ("<svg><animate attributeName=\"href\" to=\"{{ a }}\"/></svg>", "javascript:alert(1)", ""),
        ("<iframe src=\"{{ a }}\"></iframe>", "javascript:alert(1)", ""),
        ("<base href=\"{{ a }}\">", "javascript:alert(1)//", ""),
        ("<body background=\"{{ a }}\">t</body>", "javascript:alert(1)", ""),
        ("<meta http-equiv=\"refresh\" content=\"0;url={{ a }}\">", "javascript:alert(1)", ""),
        ("<meta http-equiv=\"refresh\" content=\"{{ a }}\">", "0;url=javascript:alert(1)", ""),
        ("<meta http-equiv=\"refresh\" content=\"0;url={{ a }}{{ b }}\">", "javascript", ":alert(1)"),
        // Markup inside of an attribute, styles, handlers, scripts.
        ("<iframe srcdoc=\"{{ a }}\"></iframe>", "<script>alert(1)</script>", ""),
        ("<p style=\"{{ a }}\">t</p>", "background:url(javascript:alert(1))", ""),
        ("<p style=\"color:{{ a }}\">t</p>", "red;background:url(x)", ""),
        ("<style>p{color:{{ a }}}</style>", "red}body{background:url(x)", ""),
        ("<p onclick=\"f({{ a }})\">t</p>", "1);alert(1", ""),
        ("<a href=\"javascript:f('{{ a }}')\">t</a>", "');alert(1);('", ""),
        ("<script>{% set s %}{{ a }}{% endset %}f({{ s }})</script>", "1);alert(1", ""),
    ];
    for (place, a, b) in rows {
        let html = render(place, Kind::Markup, &json!({"a": a, "b": b})).unwrap();
        assert!(!lets_script_in(&html), "{place} became {html}");
    }
    // The check itself sees what these rows would become.
    for html in [
        "<a href=\"javascript:alert(1)\">",
        "<a href=' java&#9;script&colon;alert(1)'>",
        "<iframe srcdoc=\"&lt;script&gt;alert(1)&lt;/script&gt;\">",
        "<p style=\"color:red;background:url(x)\">",
        "<style>p{color:red}body{background:url(x)}</style>",
        "<p onclick=\"f(1);alert(1)\">",
        "<script>f(1);alert(1)</script>",
        "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
    ] {
        assert!(lets_script_in(html), "{html}");
    }
}

/// True if one of the values above would run its script in this HTML.
fn lets_script_in(html: &str) -> bool {
    let squeeze = |text: &[u8]| -> String {
        let text = String::from_utf8_lossy(text).to_lowercase();
        text.chars().filter(|c| !c.is_control() && !c.is_whitespace()).collect()
    };
    let runs = |name: &str, value: &str| match name {
        "content" => value.contains("url=javascript:"),
        "srcdoc" => value.contains("<script"),
        "style" => value.contains("url("),
        _ if name.starts_with("on") => value.contains(");alert("),
        _ => value.starts_with("javascript:alert") || value.contains("');alert(1)"),
    };
    let mut emitter = html5gum::DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut inside = String::new();
    html5gum::Tokenizer::new_with_emitter(html, emitter).flatten().any(|token| match token {
        html5gum::Token::StartTag(tag) => {
            inside = squeeze(&tag.name);
            tag.attributes.iter().any(|(name, value)| runs(&squeeze(name), &squeeze(&value.value)))
        }
        html5gum::Token::String(text) => match inside.as_str() {
            "script" => squeeze(&text).contains(");alert("),
            "style" => squeeze(&text).contains("url("),
            _ => false,
        },
        _ => false,
    })
}

#[test]
fn ordinary_addresses_stay_as_they_are() {
    for (place, values, expected) in [
        (
            "<a href=\"{{ a }}\">",
            json!({"a": "https://a.example/?x=a:b&y"}),
            "<a href=\"https://a.example/?x=a:b&amp;y\">",
        ),
        (
            "<a href=\"{{ a }}{{ b }}\">",
            json!({"a": "https://a.example", "b": "/x:y"}),
            "<a href=\"https://a.example/x:y\">",
        ),
        (
            "<a href=\"{{ a }}://{{ b }}/\">",
            json!({"a": "https", "b": "a.example:8080"}),
            "<a href=\"https://a.example:8080/\">",
        ),
        ("<a href=\"{{ a }}:8080/\">", json!({"a": "https://a.example"}), "<a href=\"https://a.example:8080/\">"),
        ("<a href=\"mailto:{{ a }}\">", json!({"a": "a@b.co"}), "<a href=\"mailto:a@b.co\">"),
        ("<a href=\"{{ a }}&utm=1\">", json!({"a": "https://a.example/?x"}), "<a href=\"https://a.example/?x&utm=1\">"),
        (
            "<a href=\"{% if a %}{{ a }}{% else %}{{ b }}{% endif %}\">",
            json!({"b": "https://b.example/"}),
            "<a href=\"https://b.example/\">",
        ),
        (
            "<img src=\"data:image/png;base64,{{ a }}\">",
            json!({"a": "AA+/="}),
            "<img src=\"data:image/png;base64,AA+/=\">",
        ),
        (
            "<p style=\"color:{{ a }};width:{{ b }}px\">",
            json!({"a": "#fff", "b": 12}),
            "<p style=\"color:#fff;width:12px\">",
        ),
        ("<h{{ a }}>t</h{{ a }}>", json!({"a": 2}), "<h2>t</h2>"),
        ("<script>var x = {{ a|tojson }};</script>", json!({"a": {"b": 1}}), "<script>var x = {\"b\": 1};</script>"),
        ("<a href=\"{{ a|safe }}\">", json!({"a": "https://a.example/?x&y"}), "<a href=\"https://a.example/?x&y\">"),
    ] {
        assert_eq!(render(place, Kind::Markup, &values).unwrap(), expected, "{place}");
    }
}

#[test]
fn computed_names_are_refused_where_they_decide() {
    for source in [
        "<s{{ a }}>alert(1)</s{{ a }}>",
        "<a {{ a }}=\"{{ b }}\">t</a>",
        "<a on{{ a }}=\"{{ b }}\">t</a>",
        "<a h{{ a }}f='{{ b }}'>t</a>",
        "{% macro m(u) %}{{ u }}{{ caller() }}{% endmacro %}<a href=\"{% call m(a) %}{% endcall %}\">t</a>",
        "<a href=\"{% filter lower %}{{ a }}{% endfilter %}\">t</a>",
        "<script>{% filter lower %}{{ a }}{% endfilter %}</script>",
    ] {
        assert!(render(source, Kind::Markup, &json!({"a": "x", "b": "y"})).is_err(), "{source}");
    }
}

/// Returns the tags and names of attributes, as a browser finds them.
fn shape(html: &str) -> Vec<String> {
    let mut shape = Vec::new();
    let mut emitter = html5gum::DefaultEmitter::default();
    emitter.naively_switch_states(true);
    for token in html5gum::Tokenizer::new_with_emitter(html, emitter).flatten() {
        match token {
            html5gum::Token::StartTag(tag) => {
                shape.push(format!("<{}", String::from_utf8_lossy(&tag.name)));
                shape.extend(tag.attributes.keys().map(|name| format!("@{}", String::from_utf8_lossy(name))));
            }
            html5gum::Token::EndTag(tag) => shape.push(format!("/{}", String::from_utf8_lossy(&tag.name))),
            html5gum::Token::Comment(_) => shape.push("!".to_owned()),
            _ => {}
        }
    }
    shape
}

fn href_runs_scripts(html: &str) -> bool {
    html5gum::Tokenizer::new(html).flatten().any(|token| match token {
        html5gum::Token::StartTag(tag) => tag.attributes.iter().any(|(name, value)| {
            matches!(name.as_slice(), b"href" | b"src") && value.value.starts_with(b"javascript:")
        }),
        _ => false,
    })
}

/// Returns the processor time that the process has used, in seconds.
fn processor_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    std::time::Duration::try_from(time).unwrap().as_secs_f64()
}

#[test]
fn hostile_templates_end_within_their_bounds() {
    let long_name = "a".repeat(1 << 20);
    let elifs = "{% elif a %}".repeat(20_000);
    let sources = [
        "{% for i in range(99999) %}{% for j in range(99999) %}{% for k in range(99999) %}{% endfor %}{% endfor %}{% endfor %}".to_owned(),
        "{% for i in range(999999999) %}x{% endfor %}".to_owned(),
        "{{ 'a' * 99999999 }}".to_owned(),
        "{{ 99999999 * 'a' }}".to_owned(),
        "{{ s * 99999999 }}".to_owned(),
        "{{ [1] * 99999999 }}".to_owned(),
        "{{ ('a' ~ s) * (9 + 99999999) }}".to_owned(),
        format!("{{% set a = s %}}{}{{{{ a }}}}", "{% set a = a ~ a %}".repeat(40)),
        format!("{{% set a = s %}}{}{{{{ a }}}}", "{% set a = a + a %}".repeat(40)),
        format!("{{% set a = [s] %}}{}{{{{ a }}}}", "{% set a = [a, a] %}".repeat(60)),
        format!("{{% set a = [s] %}}{}{{{{ a == a }}}}", "{% set a = a + a %}".repeat(60)),
        format!("{{% set a = {{'k': s}} %}}{}{{{{ a }}}}", "{% set a = {'a': a, 'b': a} %}".repeat(60)),
        format!("{{% set a = s %}}{}{{{{ a }}}}", "{% set a %}{{ a }}{{ a }}{% endset %}".repeat(40)),
        format!("{{% set a = [] %}}{}{{{{ a }}}}", "{% set a = [a] %}".repeat(15_000)),
        format!("{{% set a = [1] %}}{}{{{{ a }}}}", "{% set a = a[0:] %}".repeat(15_000) + &"{% set a = a | batch(1) | list %}".repeat(400)),
        "{% set ns = namespace(a=s) %}{% for i in range(99) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}{{ ns.a }}".to_owned(),
        "{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}".to_owned(),
        "{% set ns = namespace() %}{% set ns.me = [ns] %}{{ ns }}".to_owned(),
        "{% set ns = namespace() %}{% set x = namespace(a=ns) %}{% set ns.b = x %}{{ ns }}".to_owned(),
        "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}".to_owned(),
        "{% macro m(a) %}{{ m(a ~ a) }}{% endmacro %}{{ m('aaaaaaaaaaaaaaaa') }}".to_owned(),
        format!("{{% set x %}}{{% for i in range(50000) %}}{}{{% endfor %}}{{% endset %}}", "x".repeat(10_000)),
        format!("{{% for i in range(50000) %}}{}{{% endfor %}}", "x".repeat(10_000)),
        format!("{{% macro m() %}}{}{{% endmacro %}}{{% set ns = namespace(l=[]) %}}{{% for i in range(50000) %}}{{% set ns.l = ns.l + [m()] %}}{{% endfor %}}", "x".repeat(10_000)),
        "{{ s | replace('', s) | replace('', s) | replace('', s) }}".to_owned(),
        "{{ range(99999) | join(s) }}{{ range(99999) | join(s) }}{{ range(99999) | join(s) | length }}".to_owned(),
        "{{ 'a' | indent(999999999) }}".to_owned(),
        "{{ 'a' | indent(width=999999999) }}".to_owned(),
        "{{ '%999999999d' | format(1) }}".to_owned(),
        "{{ '%*d' | format(999999999, 1) }}".to_owned(),
        "{{ [1] | batch(999999999, 'x') }}".to_owned(),
        "{{ [1] | slice(999999999) }}".to_owned(),
        "{{ {'a': 1} | tojson(indent=999999999) }}".to_owned(),
        "{% for i in range(99999) %}{{ range(99999) | list | sort | length }}{% endfor %}".to_owned(),
        "{% for i in range(99999) %}{% if s in [s ~ 'x', s] %}{% endif %}{{ s[9] }}{{ s[5:6] }}{% endfor %}".to_owned(),
        "{% for i in range(99999) %}{% for j in range(99999) if false %}{% endfor %}{% endfor %}".to_owned(),
        "{% for a in t recursive %}{{ loop(t) }}{% endfor %}".to_owned(),
        format!("{{{{ {} }}}}", "(".repeat(100_000)),
        format!("{{{{ {} }}}}", "[".repeat(100_000)),
        format!("{{{{ {}a }}}}", "-".repeat(100_000)),
        format!("{{{{ {}a }}}}", "not ".repeat(100_000)),
        format!("{{{{ a{} }}}}", ".a".repeat(100_000)),
        format!("{{{{ a{} }}}}", "|e".repeat(100_000)),
        format!("{{{{ a{} }}}}", " + a".repeat(100_000)),
        format!("{{{{ a{} }}}}", " ~ a".repeat(100_000)),
        format!("{{{{ a{} }}}}", " ** a".repeat(100_000)),
        format!("{{{{ a{} }}}}", "[0]".repeat(100_000)),
        format!("{{{{ a{} }}}}", "()".repeat(100_000)),
        format!("{{{{ {} }}}}", "a if b else ".repeat(100_000)),
        format!("{}{}", "{% if a %}".repeat(50_000), "{% endif %}".repeat(50_000)),
        format!("{}{}", "{% for a in b %}".repeat(50_000), "{% endfor %}".repeat(50_000)),
        format!("{{% if a %}}{elifs}{{% endif %}}"),
        format!("{{{{ {long_name} }}}}"),
        format!("{{{{ a.{long_name} }}}}"),
        format!("{{{{ '{}' }}}}", "x".repeat(1 << 20)),
        "x".repeat((2 << 20) + 1),
        "{{ a }}".repeat(30_000),
    ];
    let values = json!({"s": "x".repeat(1000), "t": [1, 2], "b": [1]});
    for source in &sources {
        let begun = processor_time();
        let outcome = render(source, Kind::Markup, &values);
        let shown: String = source.chars().take(120).collect();
        assert!(outcome.is_err(), "{shown} was rendered");
        let bound = if cfg!(debug_assertions) { 8.0 } else { 1.0 };
        let took = processor_time() - begun;
        assert!(took < bound, "{shown} took {took} s");
    }
}

fn mjml(source: &str) -> Result<super::mjml::Rendered, Fault> {
    on_large_stack(|| super::mjml::render(source, &super::gate::tokens(source)?))
}

fn css(source: &str) -> super::css::Inlined {
    on_large_stack(|| super::css::inline(source, &super::gate::tokens(source).unwrap(), None))
}

#[test]
fn styles_go_into_elements_and_nothing_else_changes() {
    let cases = [
        (
            "<style>td{color:red}.a{margin:0}</style><table>{% for r in rows %}<tr class=\"a\"><td>{{ r }}</td></tr>{% endfor %}</table>",
            "<style>td{color:red}.a{margin:0}</style><table>{% for r in rows %}<tr style=\"margin: 0;\" class=\"a\"><td style=\"color: red;\">{{ r }}</td></tr>{% endfor %}</table>",
        ),
        (
            "<html>\n<head><style>p{font-family:\"A B\"}</style></head><body><P STYLE='top:0'>&nbsp;é<br/></P></body>",
            "<html>\n<head><style>p{font-family:\"A B\"}</style></head><body><P STYLE=\"font-family: 'A B';top: 0\">&nbsp;é<br/></P></body>",
        ),
        (
            "<style>p{x:y}</style><p {% if a %}class=b{% endif %}>c</p>",
            "<style>p{x:y}</style><p {% if a %}class=b{% endif %}>c</p>",
        ),
        ("<style>@media(max-width:1px){p{x:y}}</style><p>c", "<style>@media(max-width:1px){p{x:y}}</style><p>c"),
        ("<p class=x>{{ a < b }}</p>", "<p class=x>{{ a < b }}</p>"),
    ];
    for (before, after) in cases {
        let inlined = css(before);
        assert_eq!((inlined.html.as_str(), inlined.left), (after, None), "{before}");
    }
    for left in ["<style>p{color:{{ c }}}</style><p>x", "<style>p:first-child{x:y}</style>{% if a %}<p>x{% endif %}"] {
        let inlined = css(left);
        assert_eq!(inlined.html, left);
        assert!(inlined.left.is_some(), "{left}");
    }
    let deep = format!("<style>p{{color:red}}</style>{}", "<div>".repeat(20_000));
    assert!(css(&deep).left.is_some());
    let reopened = format!("<style>p{{color:red}}</style>{}{}", "<b id=x>".repeat(100), "<p>".repeat(9000));
    assert!(css(&reopened).left.is_some());
}

#[test]
fn mjml_keeps_what_the_template_says() {
    let source = "<mjml><mj-head><mj-title>{{ t }}</mj-title></mj-head><mj-body>{% if a < b %}<mj-section><mj-column>\n{% for row in rows %}<mj-text>Hi {{ row.name }} &amp; co</mj-text>{% endfor %}<mj-button href=\"{{ url }}\">Go</mj-button>\n</mj-column></mj-section>{% endif %}</mj-body></mjml>";
    let html = mjml(source).unwrap().html;
    for part in [
        "{% if a < b %}",
        "{% for row in rows %}",
        "{{ row.name }}",
        "{% endfor %}",
        "href=\"{{ url }}\"",
        "{% endif %}",
        "<title>{{ t }}</title>",
    ] {
        assert!(html.contains(part), "{part} is not in {html}");
    }
    let values = json!({"a": 1, "b": 2, "rows": [{"name": "<Ann>"}, {"name": "Bob"}], "url": "https://a.example/?a=1&b=2", "t": "T"});
    let page = render(&html, Kind::Markup, &values).unwrap();
    assert!(
        page.contains("&lt;Ann&gt;")
            && page.contains("Hi Bob")
            && page.contains("href=\"https://a.example/?a=1&amp;b=2\"")
    );
}

#[test]
fn what_mjml_would_drop_is_an_error_with_its_line() {
    #[track_caller]
    fn fails(source: &str, line: Option<usize>) {
        let fault = mjml(source).expect_err(source);
        assert_eq!(fault.position.map(|at| at.line), line, "{source}: {fault}");
    }
    let body = |inner: &str| {
        format!("<mjml>\n<mj-body>\n<mj-section><mj-column>\n{inner}\n</mj-column></mj-section></mj-body></mjml>")
    };
    fails(&body("<mj-foo>a</mj-foo>"), Some(4));
    fails(&body("<mj-text>\n<mj-bar/></mj-text>"), Some(5));
    fails(&body("<mj-include path=\"/etc/passwd\"/>"), Some(4));
    fails(&body("<mj-html-attributes/>"), Some(4));
    fails(&body("<mj-text>a<b>c</mj-text>"), Some(5));
    fails(&body("<mj-text>a < b</mj-text>"), Some(4));
    fails("<mjml>\n<mj-head><p></p></mj-head></mjml>", Some(2));
    fails("<p>no</p>", Some(1));
    fails("", None);
    fails(&format!("<mjml><mj-body>\n{}", "<mj-wrapper>".repeat(50_000)), None);
    fails(&format!("<mjml><mj-body>\n{}", "<mj-wrapper>".repeat(5000)), Some(2));
    fails(&body(&format!("<mj-text>{}</mj-text>", "<i>".repeat(5000))), Some(4));
}

const SAMPLES: [(&str, &str); 13] = [
    ("hero", include_str!("samples/hero.mjml")),
    ("columns", include_str!("samples/columns.mjml")),
    ("carousel", include_str!("samples/carousel.mjml")),
    ("accordion", include_str!("samples/accordion.mjml")),
    ("social", include_str!("samples/social.mjml")),
    ("navbar", include_str!("samples/navbar.mjml")),
    ("table", include_str!("samples/table.mjml")),
    ("receipt", include_str!("samples/receipt.mjml")),
    ("wrapper", include_str!("samples/wrapper.mjml")),
    ("styles", include_str!("samples/styles.mjml")),
    ("raw", include_str!("samples/raw.mjml")),
    ("background", include_str!("samples/background.mjml")),
    ("two_sections", include_str!("samples/two_sections.mjml")),
];

/// Each sample is saved, compiled and rendered; every value that it names is on the page, and no MJML or template
/// language is left.
#[test]
fn samples_of_mjml_are_rendered_whole() {
    use super::values::Values;
    let values = json!({
        "headline": "HEADLINE <1>", "teaser": "TEASER", "left": "LEFT & 2", "middle": "MIDDLE", "right": "RIGHT",
        "link": "https://link.example/?a=1&b=2", "picture": "https://picture.example/p.png",
        "items": [{"name": "FIRST", "price": 99}, {"name": "SECOND", "price": 101}],
    });
    for (name, source) in SAMPLES {
        let design = super::Design {
            name: name.to_owned(),
            subject: Some("s".to_owned()),
            mjml: Some(source.to_owned()),
            inline_css: true,
            ..super::Design::default()
        };
        let made = super::saving::make(crate::domain::channel::Channel::Email, design)
            .unwrap_or_else(|violations| panic!("{name}: {violations:?}"));
        let compiled = on_large_stack(|| {
            super::compiled::Compiled::of_design(
                &made.design,
                made.ready.as_deref(),
                crate::domain::channel::Channel::Email,
            )
        })
        .unwrap();
        let given = Values::new(values.as_object().unwrap());
        let rendering = compiled.render(given, Limits::WHOLE).unwrap_or_else(|(_, fault)| panic!("{name}: {fault}"));
        let html = rendering.html.unwrap();
        for left_over in ["<mj", "{{", "{%", "{#", "mjt"] {
            assert!(!html.contains(left_over), "{name} has {left_over}: {html}");
        }
        for (variable, shown) in [
            ("headline", "HEADLINE &lt;1&gt;"),
            ("teaser", "TEASER"),
            ("left", "LEFT &amp; 2"),
            ("middle", "MIDDLE"),
            ("right", "RIGHT"),
            ("link", "https://link.example/?a=1&amp;b=2"),
            ("picture", "https://picture.example/p.png"),
        ] {
            let is_used = source.contains(&format!("{{{{ {variable}"));
            assert_eq!(html.contains(shown), is_used, "{name}: {variable} in {html}");
        }
        if source.contains("item.name") {
            assert!(html.find("FIRST").unwrap() < html.find("SECOND").unwrap(), "{name}: {html}");
        }
        assert!(html.contains("<!doctype html>") || html.contains("<!DOCTYPE html>"), "{name}: {html}");
    }
}

#[test]
fn only_the_styles_that_mjml_wants_inlined_are() {
    let (_, source) = SAMPLES.iter().find(|(name, _)| *name == "styles").unwrap();
    let design = super::Design { mjml: Some((*source).to_owned()), inline_css: true, ..super::Design::default() };
    let made = super::saving::make(crate::domain::channel::Channel::Email, design).unwrap();
    let ready = made.ready.unwrap();
    assert!(ready.contains("<p style=\"letter-spacing: 1px;\" class=\"note\">"), "{ready}");
    assert!(ready.contains("font-size: 16px !important"), "{ready}");
}

/// The guards change nothing: the output that they allow is that of the engine alone.
mod guards {
    use proptest::prelude::*;

    use super::*;

    fn expression() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("a".to_owned()),
            Just("b".to_owned()),
            Just("s".to_owned()),
            Just("list".to_owned()),
            Just("m.k".to_owned()),
            Just("m['k']".to_owned()),
            Just("missing".to_owned()),
            Just("2".to_owned()),
            Just("'x y'".to_owned()),
        ];
        leaf.prop_recursive(4, 24, 3, |inner| {
            let operator = prop::sample::select(vec![
                "+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or",
            ]);
            let filter = prop::sample::select(vec![
                "|upper",
                "|length",
                "|default(1)",
                "|list",
                "|first",
                "|join('-')",
                "|string",
                "|replace('x', 'y')",
            ]);
            prop_oneof![
                (inner.clone(), operator.clone(), inner.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
                (inner.clone(), operator, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
                (inner.clone(), filter).prop_map(|(a, filter)| format!("({a}){filter}")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})[{b}]")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})[{b}:]")),
                inner.clone().prop_map(|a| format!("({a})[:1][0]")),
                inner.clone().prop_map(|a| format!("-{a}")),
                // In parentheses: after an operator the engine takes `not (…)` for the call of a function.
                inner.clone().prop_map(|a| format!("(not {a})")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, {b}]")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{{'k': {a}, 'l': {b}}}['k']")),
                (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} if {b} else {c})")),
                inner.clone().prop_map(|a| format!("({a} is defined)")),
                (inner.clone(), inner).prop_map(|(a, b)| format!("({a} is eq({b}))")),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn change_nothing(expression in expression()) {
            let values = json!({"a": 3, "b": 2, "s": "text", "list": [1, 2, 3], "m": {"k": 7}});
            let sources = [
                format!("{{{{ {expression} }}}}"),
                format!("{{% if {expression} %}}y{{% else %}}n{{% endif %}}"),
                format!("{{% set z = {expression} %}}{{{{ z }}}}"),
                format!("{{% for z in [{expression}] %}}{{{{ z }}}}{{% endfor %}}"),
                format!("{{% set n = namespace() %}}{{% set n.z = {expression} %}}{{{{ n.z }}}}"),
                format!("<a href=\"{{{{ {expression} }}}}\" title={{{{- {expression} -}}}} >"),
            ];
            for source in sources {
                let mut bare = minijinja::Environment::new();
                bare.set_undefined_behavior(minijinja::UndefinedBehavior::Chainable);
                bare.set_formatter(super::super::escape::print);
                let alone = bare.render_str(&source, Value::from(Serde(&values)));
                let guarded = render(&source, Kind::Plain, &values);
                match (alone, guarded) {
                    (Ok(alone), Ok(guarded)) => prop_assert_eq!(alone, guarded, "{}", source),
                    (Err(_), Err(_)) => {}
                    // Texts and lists are not repeated, and the engine's own objects not stored.
                    (Ok(_), Err(fault)) => {
                        let message = fault.to_string();
                        prop_assert!(message.contains("multiplies numbers"), "{}: {}", source, message);
                    }
                    (Err(error), Ok(guarded)) => prop_assert!(false, "{}: {} but {}", source, error, guarded),
                }
                let page = render(&source, Kind::Markup, &values);
                prop_assert!(!matches!(page, Err(RenderFault::Failed(fault)) if fault.message.contains("syntax")));
            }
        }
    }
}
