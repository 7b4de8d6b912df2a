"""The README's shell blocks, pasted one after the other into one shell, as a reader would.

A block to be tried has a comment before it: `<!-- test: run -->` must succeed, `fails` must not.
A block without a language is what the one before it prints.
"""

import os
import re
import subprocess
import tempfile
import unittest

from harness.proxy import binary, free_port

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BLOCK = re.compile(r"<!-- test: (\w+) -->\n```sh\n(.*?)```", re.DOTALL)


def readme():
    with open(os.path.join(ROOT, "README.md")) as file:
        return file.read()


def blocks():
    return BLOCK.findall(readme())


class Readme(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="sluice-readme-")
        self.addCleanup(directory.cleanup)
        self.home = directory.name

    def paste(self, text):
        """The block in a shell that leaves nothing behind: other ports, another home."""
        for port, ours in self.ports.items():
            text = text.replace(":%d" % port, ":%d" % ours).replace(" %d " % port, " %d " % ours)
        text = text.replace("build/sluice run &", "build/sluice run --listen 127.0.0.1:%d --admin off &" % self.ports[7878])
        return re.sub(r"^make\b", "make SETUP=:", text, flags=re.MULTILINE)

    def script(self):
        self.ports = {7878: free_port(), 8000: free_port()}
        out = ['cd "%s"; mkdir work; ln -s "%s"/* work/; cd work' % (self.home, ROOT), "set -m"]
        for number, (kind, text) in enumerate(blocks()):
            out += ["echo '== %d'" % number, self.paste(text), "status=$?; echo \"== $status\""]
            if "run" in text and "&" in text:
                out.append("for i in $(seq 100); do curl --silent --output /dev/null http://127.0.0.1:%d/ && break; sleep 0.1; done"
                           % self.ports[7878])
        return "\n".join(out + ["kill $(jobs -p) 2>/dev/null", "wait"])

    def test_it_works_when_pasted(self):
        if os.path.realpath(binary()) != os.path.realpath(os.path.join(ROOT, "build/sluice")):
            self.skipTest("the README is about build/sluice")
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("SLUICE") and not name.lower().endswith("_proxy")}
        environment.update(HOME=self.home, DESTDIR=os.path.join(self.home, "installed"), XDG_CONFIG_HOME="",
                           XDG_STATE_HOME=os.path.join(self.home, "state"))
        done = subprocess.run(["bash", "-c", self.script()], env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        parts = re.findall(r"^== (\d+)\n(.*?)^== (\d+)$", done.stdout, re.DOTALL | re.MULTILINE)
        self.assertEqual(len(parts), len(blocks()), done.stdout)
        for (kind, text), (_, output, status) in zip(blocks(), parts):
            with self.subTest(text):
                self.assertEqual(status == "0", kind != "fails", output)
        self.assertIn("# Sluice", done.stdout, "what curl fetched")
        self.assertIn("HTTP/1.1 502", done.stdout)
        self.assertIn("Sluice-Reason: connect", done.stdout)
        self.assertIn("ok: 0 configurations, 1 policy", done.stdout)
        shown = re.findall(r"^```\n(.*?)^```$", re.sub(r"^```sh\n.*?^```$", "", readme(), flags=re.DOTALL | re.MULTILINE),
                           re.DOTALL | re.MULTILINE)
        self.assertTrue(shown)
        for text in shown:
            self.assertIn(text, done.stdout)
        self.assertTrue(os.path.exists(os.path.join(self.home, "installed/usr/local/bin/sluice")))

    def test_every_command_is_listed(self):
        text = subprocess.run([binary(), "--help"], check=True, capture_output=True, text=True).stdout
        for name in re.findall(r"^  ([a-z]+) ", text.partition("Subcommands:\n")[2], re.MULTILINE):
            self.assertIn("`sluice %s" % name, readme(), "a command that the README does not know")

    def test_its_links_lead_somewhere(self):
        for link in re.findall(r"\]\(([^)#:]+)\)", readme()):
            self.assertTrue(os.path.exists(os.path.join(ROOT, link)), link)

    def test_every_policy_is_named(self):
        for name in os.listdir(os.path.join(ROOT, "conf/policies")):
            self.assertIn(name.removesuffix(".toml"), readme())
