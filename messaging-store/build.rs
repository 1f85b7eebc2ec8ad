//! Lists the migrations of both databases, `V0001__schema.sql` and on, for `src/migrations.rs`.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=migrations");
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo tells where the crate is");
    let mut list = String::new();
    for (name, folder, condition) in
        [("SQLITE", "sqlite", ""), ("POSTGRES", "postgres", "#[cfg(feature = \"postgres\")]\n")]
    {
        let folder = Path::new(&root).join("migrations").join(folder);
        let mut files: Vec<_> = fs::read_dir(&folder)
            .expect("there are migrations")
            .map(|file| file.expect("it can be read").path())
            .collect();
        files.sort();
        writeln!(list, "{condition}pub(crate) const {name}: &[Migration] = &[").expect("texts take all");
        for file in files {
            let stem = file.file_stem().and_then(|stem| stem.to_str()).expect("names are UTF-8");
            let (version, name) = stem
                .strip_prefix('V')
                .and_then(|stem| stem.split_once("__"))
                .and_then(|(version, name)| Some((version.parse::<i32>().ok()?, name)))
                .unwrap_or_else(|| panic!("{} is not named V<number>__<name>.sql", file.display()));
            let path = file.to_str().expect("paths are UTF-8");
            writeln!(list, "Migration {{ version: {version}, name: {name:?}, sql: include_str!({path:?}) }},")
                .expect("texts take all");
        }
        writeln!(list, "];").expect("texts take all");
    }
    let out = env::var("OUT_DIR").expect("cargo tells where to write");
    fs::write(Path::new(&out).join("migrations.rs"), list).expect("the list can be written");
}
