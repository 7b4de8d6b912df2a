"""Starting and not starting: one line when ready, one clear sentence when not."""

import socket
import tempfile

from harness.case import ProxyCase
from harness.proxy import free_port


class OwnProxies(ProxyCase):
    """Each test starts its own proxies."""

    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass

    def refusal(self, *settings, **options):
        """The words of a proxy that must not start."""
        proxy = self.start(*settings, ready=False, **options)
        self.assertEqual(proxy.wait(10), 2, proxy.log())
        return proxy, proxy.log()


class Startup(OwnProxies):
    def test_one_line_when_ready(self):
        proxy = self.start()
        self.origin().wait(proxy.log)  # it listens a moment before it says so
        lines = proxy.log().strip().splitlines()
        self.assertTrue(any("127.0.0.1:%d" % proxy.port in line for line in lines), lines)
        self.assertLessEqual(len(lines), 5, "a start is not a story")

    def test_no_open_proxy(self):
        for listen in ("0.0.0.0:%d", "[::]:%d"):
            with self.subTest(listen):
                port = free_port()
                _, said = self.refusal(listen=listen % port)
                self.assertIn(listen % port, said)
                self.assertIn("access", said)

    def test_a_state_directory_that_cannot_be_opened(self):
        """The store cannot be reached: that is 3. With "local" the traffic goes on, and it is said."""
        with tempfile.NamedTemporaryFile() as file:
            blocked = self.start(ready=False, state=file.name)
            self.assertEqual(blocked.wait(10), 3, blocked.log())
            self.assertIn(file.name, blocked.log())
            local = self.start('store.on_failure="local"', state=file.name, admin="127.0.0.1:%d" % free_port())
            self.assertEqual(self.fetch(self.origin().url(), proxy=local).status, 200)
            self.assertIn('store.on_failure is "local": what is learned is kept in memory only', local.log())
            self.assertIn("there is no admin side", local.log())

    def test_open_to_listed_clients(self):
        proxy = self.start('access.clients=["127.0.0.0/8"]', ready=False, listen="0.0.0.0:%d" % (port := free_port()))
        proxy.port, proxy.address = port, ("127.0.0.1", port)
        proxy.wait_ready()
        self.assertEqual(self.fetch(self.origin().url(), proxy=proxy).status, 200)
        own = self.fetch("http://127.0.0.1:%d/" % port, proxy=proxy)
        self.assertEqual(own.status, 508, "its own port, though it listens on every address")

    def test_errors_point_at_the_place(self):
        rows = [("[proxy]\nworkerz = 2\n", "2:1", "workers"),
                ("[proxy]\nworkers = \"two\"\n", "2:11", "workers"),
                ("[proxy]\n\n[proxy.timeouts]\nhead = \"10 parsecs\"\n", "4:8", "head"),
                ("[proxy\n", "1:", ""),
                ("[acess]\n", "1:", "access")]
        for text, place, word in rows:
            with self.subTest(text):
                proxy, said = self.refusal(config=text)
                self.assertIn("%s/sluice.toml:%s" % (proxy.directory, place), said)
                self.assertIn(word, said)

    def test_every_error_at_once(self):
        _, said = self.refusal(config="[proxy]\nworkerz = 2\nmax_clientz = 3\n")
        self.assertIn("workerz", said)
        self.assertIn("max_clientz", said)

    def test_a_bad_setting_on_the_command_line(self):
        for setting, word in (("proxy.workerz=2", "workers"), ("proxy.workers=many", "workers"), ("nonsense", "nonsense")):
            with self.subTest(setting):
                _, said = self.refusal(setting)
                self.assertIn(word, said)

    def test_a_configuration_that_is_not_there(self):
        _, said = self.refusal(arguments=("--config", "/nonexistent/sluice.toml"))
        self.assertIn("/nonexistent/sluice.toml", said)

    def test_the_port_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            proxy = self.start(ready=False, listen=address)
            self.assertNotEqual(proxy.wait(10), 0)
            self.assertIn(address, proxy.log())
            self.assertRegex(proxy.log().lower(), "in use|taken|already")

    def test_a_second_proxy_does_not_share_the_port_in_silence(self):
        """SO_REUSEPORT lets two processes have one port: half the clients would meet the wrong one."""
        first = self.start()
        second = self.start(ready=False, listen="127.0.0.1:%d" % first.port)
        self.assertNotEqual(second.wait(10), 0)
        self.assertRegex(second.log().lower(), "in use|taken|already")

    def test_a_users_file_that_is_wrong(self):
        proxy, said = self.refusal('access.users="/nonexistent/users"')
        self.assertIn("/nonexistent/users", said)

