//! Rendering an order confirmation compared with the template engine alone.
//!
//! Both render the same subject, HTML and text from the same JSON. The product adds guards, a budget and escaping, and
//! looks up values in the request, the contact and the system's variables.

use std::hint::black_box;
use std::time::Instant;

use messaging_benches::{BenchOptions, report};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::template::budget::Limits;
use messaging_core::domain::template::compiled::Compiled;
use messaging_core::domain::template::saving::{Made, make};
use messaging_core::domain::template::values::Values;
use messaging_core::domain::template::{Design, Template};
use messaging_core::time::Timestamp;
use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde_json::{Map, Value as Json, json};

const SUBJECT: &str = "Your order {{ order.id }} at {{ shop.name }} is confirmed";

const TEXT: &str = "Hi {{ customer.first_name }},\n\nthank you for order {{ order.id }} of {{ order.date }}.\n\n\
{% for item in items %}{{ item.quantity }} x {{ item.name }}: {{ item.price }} {{ order.currency }}\n{% endfor %}\n\
Total: {{ order.total }} {{ order.currency }}\n{{ shop.name }}, {{ shop.street }}, {{ shop.city }}\n";

const HTML: &str = r#"<!DOCTYPE html><html><head><title>Order {{ order.id }}</title></head>
<body style="margin:0;background:#f4f4f4;font-family:Arial,sans-serif">
<table width="100%" cellpadding="0" cellspacing="0"><tr><td align="center"><table width="600" style="background:#fff">
<tr><td style="padding:24px"><img src="{{ shop.logo }}" alt="{{ shop.name }}" width="120"></td></tr>
<tr><td style="padding:24px"><h1 style="font-size:22px">Thank you, {{ customer.first_name | default("there") }}!</h1>
<p style="color:#333">We have received your order <b>{{ order.id }}</b> of {{ order.date }} and will send it to
{{ customer.first_name }} {{ customer.last_name }}, {{ address.street }}, {{ address.zip }} {{ address.city }}, {{ address.country }}.</p>
{% if order.gift %}<p>It will be wrapped as a gift: {{ order.gift_note }}</p>{% endif %}
<table width="100%" style="border-collapse:collapse">
{% for item in items %}<tr><td style="padding:8px"><img src="{{ item.image }}" alt="" width="48"></td>
<td style="padding:8px"><a href="{{ item.url }}">{{ item.name }}</a></td><td>{{ item.quantity }}</td><td align="right">{{ item.price }} {{ order.currency }}</td></tr>
{% endfor %}
<tr><td colspan="3">Shipping</td><td align="right">{{ order.shipping }} {{ order.currency }}</td></tr>
<tr><td colspan="3"><b>Total</b></td><td align="right"><b>{{ order.total }} {{ order.currency }}</b></td></tr></table>
<p><a href="{{ order.url }}" style="background:#07c;color:#fff;padding:12px">Follow your order</a></p>
<p style="color:#999">{{ shop.name }}, {{ shop.street }}, {{ shop.city }} · Questions? {{ shop.email }}</p>
</td></tr></table></td></tr></table></body></html>"#;

fn values() -> Map<String, Json> {
    let item = |n: u32| {
        json!({"name": format!("Chair \"No. {n}\" & cushion"), "quantity": n % 3 + 1, "price": "49.90",
            "image": format!("https://shop.example/i/{n}.png"), "url": format!("https://shop.example/p/{n}?from=mail")})
    };
    let items: Vec<_> = (0..10).map(item).collect();
    let all = json!({
        "order": {"id": "A-2026-000017", "date": "31 January 2026", "total": "498.90", "shipping": "4.90", "currency": "EUR",
            "url": "https://shop.example/orders/17", "gift": true, "gift_note": "Happy birthday!"},
        "customer": {"first_name": "Alex", "last_name": "O'Hara"},
        "address": {"street": "1 Main Street", "zip": "10115", "city": "Berlin", "country": "Germany"},
        "shop": {"name": "Example & Sons", "street": "2 Side Street", "city": "Hamburg", "email": "help@shop.example",
            "logo": "https://shop.example/logo.png"},
        "items": items,
    });
    all.as_object().cloned().unwrap_or_default()
}

fn compiled() -> Compiled {
    let text = |text: &str| Some(text.to_owned());
    let design = Design {
        name: "Order".to_owned(),
        subject: text(SUBJECT),
        html: text(HTML),
        text: text(TEXT),
        ..Design::default()
    };
    let Made { design, ready, variables, warnings, parts } = make(Channel::Email, design).expect("it is good");
    let (id, workspace_id) = ("tpl_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH");
    let at = Timestamp::from_millis(0);
    Compiled::of(&Template {
        id: id.parse().expect("an id"),
        workspace_id: workspace_id.parse().expect("an id"),
        channel: Channel::Email,
        version: 1,
        reverted_from: None,
        design,
        ready,
        variables,
        warnings,
        parts,
        created_at: at,
        updated_at: at,
    })
    .expect("it is good")
}

/// Renderings in a second.
fn rate(options: BenchOptions, mut render: impl FnMut() -> usize) -> f64 {
    let (begun, mut count) = (Instant::now(), 0_u32);
    while begun.elapsed() < options.turn {
        for _ in 0..100 {
            black_box(render());
        }
        count += 100;
    }
    f64::from(count) / begun.elapsed().as_secs_f64()
}

fn main() {
    let options = BenchOptions::from_arguments();
    let given = values();
    let mut engine = Environment::new();
    for (name, source) in [("subject.txt", SUBJECT), ("order.html", HTML), ("order.txt", TEXT)] {
        engine.add_template(name, source).expect("it is good");
    }
    let bare = || {
        let context = Value::from(Serde(&given));
        let names = ["subject.txt", "order.html", "order.txt"];
        let length =
            |name| engine.get_template(name).expect("it is there").render(context.clone()).expect("renders").len();
        names.into_iter().map(length).sum()
    };
    let compiled = compiled();
    let ours = || {
        let rendering = compiled.render(Values::new(&given), Limits::SHORT).expect("renders");
        [rendering.subject, rendering.html, rendering.text].iter().flatten().map(String::len).sum()
    };
    let (mut floors, mut products) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        floors.push(rate(options, bare));
        products.push(rate(options, ours));
    }
    report("an order confirmation, engine alone and ours", floors, products);
}
