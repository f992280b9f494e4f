"""Help: values have names, examples are commands that there are, verbs come first."""

import shlex
from pkgutil import iter_modules

import pytest
from typer.main import get_command

from cutrace import commands
from cutrace.commands._application import assemble
from cutrace.commands._main import run
from cutrace.commands.options.verb import VERBS as VERB_SPECS

VERBS = [m.name for m in iter_modules(commands.__path__) if not m.ispkg and m.name[0] != "_"]


def test_the_help_of_cutrace_lists_every_verb_before_its_own_options(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run([]) == 0
    text = capsys.readouterr().out
    for verb in VERBS:
        assert f"\n  {verb} " in text[: text.index("--version")]


@pytest.mark.parametrize("verb", VERBS)
def test_help_names_every_value_and_gives_examples(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if verb == "nvcc":
        pytest.skip("--help is the compiler's")
    monkeypatch.setenv("COLUMNS", "80")
    assert run([verb, "--help"]) == 0
    text = capsys.readouterr().out
    assert "Examples\n  cutrace " in text
    assert "<" not in text.replace("<<<", "").replace(">>>", "").partition("Arguments")[2]
    assert "{" not in text
    shown = text.partition("Examples\n")[2].partition("\n\n")
    assert max(map(len, shown[2].splitlines())) <= 80


@pytest.mark.parametrize("verb", VERBS)
def test_the_examples_of_a_verb_are_commands_that_it_takes(verb: str) -> None:
    command = get_command(assemble())
    known = command.commands[verb]  # type: ignore[attr-defined]
    options = {name for p in known.params for name in (*p.opts, *p.secondary_opts)}
    for example in VERB_SPECS[verb].examples:
        program, *words = shlex.split(example)
        if program == "make":
            continue
        assert (program, words[0]) == ("cutrace", verb)
        ours = words[1 : words.index("--") if "--" in words else None]
        if verb != "nvcc":
            assert {word for word in ours if word.startswith("-")} <= options


def test_the_replay_options_of_a_verb_stand_in_their_own_panel(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["why", "--help"]) == 0
    text = capsys.readouterr().out
    assert text.index("\nReplay options\n") < text.index("--device, -d NAME,...")
    assert "[LINE]" not in text
    assert "FILE:LINE|ID" in text
