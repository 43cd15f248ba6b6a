"""The command line: one file a verb, imported only when it is called.

A module of this package that defines `command` is a verb; the first line of its docstring is its help in
`turnmill --help`, which reads the file and imports nothing. A verb that reads data or a config, whole:

    \"\"\"Say whether every row meets the chat contract.\"\"\"

    from turnmill.cli.arguments import Invocation, configured
    from turnmill.cli.output import write, write_json


    @configured("sources", "read", "check", "health")
    @click.option("--all", "everything", is_flag=True, help="Print the accepted rows, too.")
    def command(call: Invocation, everything: bool) -> None:
        from turnmill.verbs.check import run  # heavy: only when the verb runs

        for verdict in run(call.config, call.sources):
            write_json(verdict) if call.json else write(verdict.line)

`configured` gives it `[CONFIG.yaml | DATA...] [--section.field VALUE]... [--json]`, the short forms of the sections it
names (`--model`, `--limit`, ...) and their part of `--help`. Errors of `turnmill.errors` end in `turnmill.cli.app`,
nowhere else: message, next command, exit code.
"""
