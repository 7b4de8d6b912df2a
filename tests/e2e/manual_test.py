"""Man pages and completions: made from the command line itself, complete, and clean."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

from harness.proxy import binary

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def made(name):
    """A generated file, beside the binary under test."""
    return os.path.join(os.path.dirname(binary()), "manual", name)


def read(path):
    with open(path) as file:
        return file.read()


def help_of(*command):
    return subprocess.run([binary(), *command, "--help"], check=True, capture_output=True, text=True).stdout


def commands(*above):
    """Every command as a tuple of words, from --help alone."""
    text = help_of(*above).partition("Subcommands:\n")[2]
    for line in text.splitlines():
        if not line.startswith("  "):
            break
        if name := re.match(r"  (\S+)", line):
            yield (*above, name[1])
            yield from commands(*above, name[1])


def options(*command):
    """The long options of a command, from --help alone."""
    return re.findall(r"^  (?:-\w,)?(--[\w-]+)", help_of(*command), re.MULTILINE)


def tool(case, name):
    path = shutil.which(name)
    if not path:
        case.skipTest("there is no %s here" % name)
    return path


class ManPages(unittest.TestCase):
    def rendered(self, name):
        man = tool(self, "man")
        done = subprocess.run([man, "--warnings", "-E", "UTF-8", "-l", made(name)], capture_output=True,
                              text=True, env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_they_are_clean(self):
        for name in ("sluice.1", "sluice.toml.5"):
            with self.subTest(name):
                self.assertTrue(self.rendered(name).strip())
                self.assertTrue(read(made(name)).isascii())

    def test_every_command_and_option_is_there(self):
        source = read(made("sluice.1")).replace("\\-", "-")
        found = list(commands())
        self.assertIn(("run",), found)
        for command in found:
            section = source.partition('.SS "sluice %s"\n' % " ".join(command))[2].partition("\n.S")[0]
            self.assertTrue(section, command)
            for option in options(*command):
                self.assertIn("\\fB%s\\fR" % option, section, command)

    def test_descriptions_and_examples_are_those_of_help(self):
        page = " ".join(self.rendered("sluice.1").split())
        for command in commands():
            text = help_of(*command)
            self.assertIn(" ".join(text.splitlines()[0].split()), page)
            for example in text.partition("Examples:\n")[2].splitlines():
                self.assertIn(" ".join(example.split()), page)

    def test_every_setting_is_there_with_its_default(self):
        page = " ".join(self.rendered("sluice.toml.5").split())
        settings = [line[1:] for line in read(os.path.join(ROOT, "conf/sluice.toml")).splitlines()
                    if re.match(r"#[a-z]", line)]
        self.assertGreater(len(settings), 50)
        for setting in settings:
            self.assertIn(setting.split(" = ")[0] + " = ", page)
        for words in ("[defaults.breaker]", "[roles.NAME]", "hosts"):
            self.assertIn(words, page)


class Bash(unittest.TestCase):
    def complete(self, *words):
        """What bash offers for these words, the last of them unfinished."""
        script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sluice; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run([tool(self, "bash"), "--norc", "-uc", script, "bash", made("sluice.bash"), *words],
                              check=True, capture_output=True, text=True, cwd=self.directory)
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split("\n")) - {""}

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        os.mkdir(os.path.join(self.directory, "policies"))
        for name in ("sluice.toml", "my own.toml", "policies/a.toml"):
            open(os.path.join(self.directory, name), "w").close()

    def test_commands(self):
        self.assertEqual(self.complete("sluice", ""), {name[0] for name in commands() if len(name) == 1})
        self.assertEqual(self.complete("sluice", "ru"), {"run"})
        for command in commands():
            self.assertIn(command[-1], self.complete("sluice", *command[:-1], ""), command)

    def test_options(self):
        for command in commands():
            self.assertEqual(self.complete("sluice", *command, "--"), set(options(*command)), command)
        self.assertEqual(self.complete("sluice", "run", "--lis"), {"--listen"})
        self.assertEqual(self.complete("sluice", "run", "--config", "x", "--lis"), {"--listen"})

    def test_files_and_directories(self):
        self.assertEqual(self.complete("sluice", "run", "--config", ""), {"sluice.toml", "my own.toml", "policies"})
        self.assertEqual(self.complete("sluice", "run", "--config", "=", "slu"), {"sluice.toml"})
        self.assertEqual(self.complete("sluice", "run", "--config", "="), {"sluice.toml", "my own.toml", "policies"})
        self.assertEqual(self.complete("sluice", "run", "--policies", ""), {"policies"})
        self.assertEqual(self.complete("sluice", "check", "pol"), {"policies"})
        self.assertEqual(self.complete("sluice", "run", "--listen", ""), set())

    def test_a_command_after_two_dashes(self):
        self.assertIn("bash", self.complete("sluice", "exec", "--", "bas"))


class OtherShells(unittest.TestCase):
    def test_zsh(self):
        zsh, text = tool(self, "zsh"), read(made("_sluice"))
        subprocess.run([zsh, "-n", made("_sluice")], check=True)
        self.assertTrue(text.startswith("#compdef sluice\n"))
        for command in commands():
            body = text.partition("_sluice_%s() {\n" % "_".join(command).replace("-", "_"))[2].partition("\n}\n")[0]
            self.assertTrue(body, command)
            for option in options(*command):
                self.assertRegex(body, r"'\*?%s=?\[" % option, command)

    def test_zsh_offers_the_commands(self):
        """A real interactive zsh, on a terminal of its own."""
        zsh, python = tool(self, "zsh"), shutil.which("python3")
        script = r"""
import os, pty, select, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execve(sys.argv[1], ["zsh", "-f", "-i"], {"PATH": os.environ["PATH"], "TERM": "dumb", "HOME": "/nonexistent", "PS1": "% "})
def say(text): os.write(fd, text.encode())
def hear(seconds):
    out, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([fd], [], [], 0.1)[0]:
            try: out += os.read(fd, 65536)
            except OSError: break
            if sys.argv[3].encode() in out: break
    return out
hear(0.5)
say("fpath=(%s $fpath); autoload -Uz compinit; compinit -u -D; zstyle ':completion:*' list-prompt ''\n" % os.path.dirname(sys.argv[2]))
hear(1)
say("sluice \t\t")
out = hear(10)
say("\x03exit\n")
os.close(fd)
os.waitpid(pid, 0)
sys.exit(0 if sys.argv[3].encode() in out else out.decode("utf-8", "replace"))
"""
        done = subprocess.run([python, "-c", script, zsh, made("_sluice"), "run the proxy in the foreground"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_fish(self):
        fish = tool(self, "fish")

        def complete(line):
            done = subprocess.run([fish, "--no-config", "-c", "source %s; complete -C '%s'" % (made("sluice.fish"), line)],
                                  check=True, capture_output=True, text=True)
            return {offer.split("\t")[0] for offer in done.stdout.splitlines()}

        subprocess.run([fish, "--no-config", "-n", made("sluice.fish")], check=True)
        self.assertEqual(complete("sluice "), {name[0] for name in commands() if len(name) == 1})
        for command in commands():
            self.assertLessEqual(set(options(*command)), complete("sluice %s --" % " ".join(command)), command)
