//! Rules for all operations.

use std::collections::HashSet;

use http::Method;
use messaging_engine::ops::{self, BodyKind, OutputKind};
use schemars::SchemaGenerator;

#[test]
fn names_paths_and_commands_are_unique() {
    let mut ids = HashSet::new();
    let mut routes = HashSet::new();
    let mut commands = HashSet::new();
    for endpoint in ops::all() {
        assert!(ids.insert(endpoint.id), "{endpoint:?}");
        assert!(routes.insert(((endpoint.method)(), endpoint.path)), "{endpoint:?}");
        assert!(commands.insert(endpoint.cli), "{endpoint:?}");
        assert!(matches!(endpoint.cli.split(' ').count(), 1 | 2), "{endpoint:?}");
        assert!(!endpoint.summary.ends_with('.') && !endpoint.summary.is_empty(), "{endpoint:?}");
    }
}

#[test]
fn methods_bodies_and_answers_agree() {
    for endpoint in ops::all() {
        let method = (endpoint.method)();
        // Deleting a workspace needs its name, and removing a factor a proof of identity.
        let has_body = ["deleteWorkspace", "deleteFactor"].contains(&endpoint.id);
        if (method == Method::GET || method == Method::DELETE) && !has_body {
            assert_eq!(endpoint.body, BodyKind::None, "{endpoint:?}");
        }
        assert_eq!(endpoint.output == OutputKind::NoContent, endpoint.success == 204, "{endpoint:?}");
    }
}

#[test]
fn path_schemas_have_the_parameters_of_the_path() {
    for endpoint in ops::all() {
        let schema = (endpoint.path_schema)(&mut SchemaGenerator::default()).to_value();
        let described: HashSet<_> =
            schema["properties"].as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default();
        let named: HashSet<_> = endpoint
            .path
            .split('/')
            .filter_map(|part| part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')))
            .map(ToOwned::to_owned)
            .collect();
        assert_eq!(described, named, "{endpoint:?}");
    }
}
