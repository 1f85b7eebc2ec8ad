//! `completions`

use crate::support::run;

#[test]
fn every_common_shell_gets_a_script_with_all_commands() {
    for (shell, word) in [("bash", "_messaging()"), ("zsh", "#compdef messaging"), ("fish", "complete -c")] {
        let ran = run(["completions", shell]).expect(0);
        assert!(ran.stdout.contains(word), "{shell}");
        for endpoint in messaging_engine::ops::all() {
            let last = endpoint.cli.rsplit(' ').next().unwrap();
            assert!(ran.stdout.contains(last), "{shell}: {}", endpoint.cli);
        }
    }
    run(["completions", "cmd.exe"]).expect(2);
}
