"""The page of vpp report: its structure always, its look in a real browser where chromium is installed."""

import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

SAMPLE = os.environ["VPP_REPORT_SAMPLE"]

PLAN = """[model]
file = "../models/out/gpt.pt"
[mesh]
pp = 2
[pipeline]
schedule_type = "1F1B"
virtual_chunks = 1
num_microbatches = 8
[optimizer]
lr = %s
[run]
dir = "runs/%s"
"""

HOSTILE = (
    '</pre></script><script src="http://evil.example/x.js">alert(1)</script><img src=x onerror="document.title=1">'
    "<style>@import url(http://evil.example)</style>'\"&<!-- ]]> \x00\x1b[2J \u202e\n"
)

# Attributes that make a browser fetch something.
LOADING = {"src", "href", "srcset", "data", "action", "poster", "background", "xlink:href", "ping", "formaction"}


class Tags(html.parser.HTMLParser):
    """All elements and attributes of a page, as an HTML parser sees them."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def names(self) -> list[str]:
        return [tag for tag, _ in self.elements]


def problems_of(text: str) -> list[str]:
    """What a page that loads nothing and runs only its own script must not have."""
    found = []
    try:
        xml.etree.ElementTree.fromstring(text.split("\n", 1)[1])
    except xml.etree.ElementTree.ParseError as error:
        found.append(f"not well-formed: {error}")
    tags = Tags(text)
    for tag, attributes in tags.elements:
        for name in attributes:
            if name in LOADING or name.startswith("on"):
                found.append(f"<{tag} {name}>")
        if "url(" in attributes.get("style", ""):
            found.append(f"<{tag} style> loads")
        if tag in ("link", "iframe", "object", "embed", "img", "base", "form", "foreignobject"):
            found.append(f"<{tag}>")
    if tags.names().count("script") != 1 or tags.names().count("style") != 1:
        found.append("scripts or styles that are not the page's own")
    for own in re.findall(r"<(?:style|script)>(.*?)</(?:style|script)>", text, re.S):
        if "url(" in own or "@import" in own or "//" in own or "fetch" in own:
            found.append("the style or the script loads")
    if "default-src 'none'" not in text:
        found.append("no policy")
    return found


class PageCase(unittest.TestCase):
    """A folder with runs and their page."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="vpp-page-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def run_folder(self, name: str, lr: str = "0.001") -> pathlib.Path:
        folder = self.folder / name
        subprocess.run([SAMPLE, "run", str(folder)], check=True)
        (folder / "plan.toml").write_text(PLAN % (lr, name))
        return folder

    @staticmethod
    def timeline(folder: pathlib.Path) -> pathlib.Path:
        (folder / "profile").mkdir(exist_ok=True)
        return folder / "profile" / "timeline.json"

    def page(self, *runs: pathlib.Path) -> str:
        subprocess.run([SAMPLE, "page", str(self.folder / "report.html"), *map(str, runs)], check=True)
        return (self.folder / "report.html").read_text()


class Page(PageCase):
    def test_one_run(self):
        text = self.page(self.run_folder("a"))
        self.assertEqual(problems_of(text), [])
        for part in ("Loss", "Rate", "Useful work", "Waiting for messages", "Memory of the ranks", "1F1B",
                     "simulated with equally dear stages", "plan.toml"):
            self.assertIn(part, text)
        self.assertIn("30/30", text)

    def test_several_runs_are_laid_over_each_other(self):
        text = self.page(self.run_folder("a"), self.run_folder("b", "0.002"))
        self.assertEqual(problems_of(text), [])
        self.assertIn("Settings that differ", text)
        self.assertRegex(text, r"optimizer\.lr</code></td><td><code>0\.001</code></td><td><code>0\.002<")
        self.assertNotIn("run.dir</code>", text)

    def test_a_measured_step_is_drawn_as_it_was(self):
        folder = self.run_folder("a")
        actions = [{"rank": rank, "kind": kind, "stage": rank, "microbatch": 3, "begin_ms": at, "end_ms": at + 10}
                   for rank in (0, 1) for kind, at in (("F", 0), ("B", 20), ("RECV_B", 10))]
        self.timeline(folder).write_text(json.dumps({"step": 12, "actions": actions}))
        text = self.page(folder)
        self.assertEqual(problems_of(text), [])
        self.assertIn("F of stage 1, microbatch 3: 0.00 to 10.00 ms", text)
        self.assertIn("measured", text)
        self.assertIn("66.7 %", text)
        self.timeline(folder).write_text('{"actions": [{"rank": -1, "kind": "F"}]}')
        self.assertIn("entry 0 of timeline.json is no action", self.page(folder))

    def test_hostile_text_is_text(self):
        folder = self.run_folder('<b>&"run"')
        lines = (folder / "metrics.jsonl").read_text()
        (folder / "metrics.jsonl").write_text(lines + HOSTILE + '{"event":"step","step":31,"loss":"</script>"}\n')
        for plan in (HOSTILE, f"[model]\nfile = '''{HOSTILE}'''\n"):
            (folder / "plan.toml").write_text(plan)
            self.timeline(folder).write_text(json.dumps({"actions": [
                {"rank": 0, "kind": HOSTILE, "stage": 0, "microbatch": 0, "begin_ms": 0, "end_ms": 1}]}))
            one, two = self.page(folder), self.page(folder, self.run_folder("other"))
            self.assertEqual(problems_of(one), [])
            self.assertEqual(problems_of(two), [])
            self.assertIn("&lt;script src=", one)
            self.assertNotRegex(one, "[\x00-\x08\x0b-\x1f\u202e]")

    def test_the_checks_see_what_they_look_for(self):
        good = self.page(self.run_folder("a"))
        for bad in ('<script src="http://evil.example/x.js"></script>', "<script>alert(1)</script>", "<p>",
                    '<img src="x"/>', '<p onclick="x()"></p>', '<p style="background: url(x)"></p>', "&nosuch;",
                    "<a href='x'></a>"):
            self.assertNotEqual(problems_of(good.replace("</main>", bad + "</main>")), [], bad)
        self.assertNotEqual(problems_of(good.replace("default-src 'none'", "default-src *")), [])
        self.assertNotEqual(problems_of(good.replace("</style>", "@import 'x';</style>")), [])

    def test_a_run_without_steps_has_a_page(self):
        folder = self.folder / "empty"
        folder.mkdir()
        (folder / "metrics.jsonl").write_text("")
        text = self.page(folder)
        self.assertEqual(problems_of(text), [])
        self.assertIn("No step was finished yet", text)

    def test_a_long_run_is_thinned_and_says_so(self):
        folder = self.folder / "long"
        folder.mkdir()
        with open(folder / "metrics.jsonl", "w") as file:
            for step in range(1, 20001):
                loss = 9.5 if step == 7777 else 1.0 + step % 7 / 100
                file.write('{"event":"step","step":%d,"total_steps":20000,"loss":%g}\n' % (step, loss))
        text = self.page(folder)
        self.assertLess(len(text), 400_000)
        self.assertIn("of 20000 steps the smallest and largest of each group are drawn", text)
        points = re.search(r'data-name="train.*?" data-x="\[(.*?)\]" data-y="\[(.*?)\]"', text)
        self.assertIsNotNone(points)
        self.assertIn("M", text)
        highest = re.search(r'class="tick" x="58" y="16"[^>]*>([0-9.]+)<', text)
        self.assertGreater(float(highest[1]), 9, "the spike stays")


class Browser(PageCase):
    """The same pages in headless chromium."""

    CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

    def setUp(self):
        super().setUp()
        if not self.CHROMIUM:
            self.skipTest("chromium is not installed")

    def chromium(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [self.CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--enable-logging=stderr", "--disable-background-networking", f"--user-data-dir={self.folder / 'profile'}",
             "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=2000", *arguments],
            capture_output=True, text=True, timeout=240)

    def dom(self, page: pathlib.Path) -> tuple[str, str]:
        done = self.chromium("--dump-dom", page.as_uri())
        return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)

    def test_the_script_runs_and_nothing_complains(self):
        page = self.folder / "report.html"
        # The probe moves the mouse over the first chart and writes what the page shows into its title.
        probe = """<script>
var box = document.querySelector("figure.chart svg"), frame = box.getBoundingClientRect();
var place = {clientX: frame.left + frame.width / 2, clientY: frame.top + 20, bubbles: true};
box.dispatchEvent(new MouseEvent("mousemove", place));
document.title = "probe: " + document.querySelector("figure.chart .tip").innerText.replace(/\\s+/g, " ");
</script>"""
        page.write_text(self.page(self.run_folder("a")).replace("</body>", probe + "</body>"))
        dom, complaints = self.dom(page)
        self.assertEqual(complaints, "")
        self.assertRegex(dom, r"<title>probe: step 1[4-6] train [0-9.]+ validation \(step [12]0\) [0-9.]+</title>")

    def test_hostile_text_does_nothing(self):
        folder = self.run_folder("a")
        (folder / "plan.toml").write_text(HOSTILE.replace("alert(1)", "document.title='owned'"))
        self.page(folder)
        dom, complaints = self.dom(self.folder / "report.html")
        self.assertIn("<title>vpp report", dom)
        self.assertEqual(complaints, "")
        # The control: unescaped it would.
        page = self.folder / "report.html"
        page.write_text(page.read_text().replace("</main>", "<script>document.title='owned'</script></main>"))
        self.assertIn("<title>owned</title>", self.dom(page)[0])

    def test_dark_and_light_differ(self):
        self.page(self.run_folder("a"))
        sizes = {}
        for name, scheme in (("dark", "0"), ("light", "1")):
            picture = self.folder / f"{name}.png"
            done = self.chromium(f"--blink-settings=preferredColorScheme={scheme}", "--window-size=1200,900",
                                 f"--screenshot={picture}", (self.folder / "report.html").as_uri())
            self.assertTrue(picture.exists(), done.stderr)
            sizes[name] = picture.read_bytes()
        self.assertNotEqual(sizes["dark"], sizes["light"])
        keep = os.environ.get("VPP_KEEP_PICTURES")
        if keep:
            for name, data in sizes.items():
                (pathlib.Path(keep) / f"report_{name}.png").write_bytes(data)


if __name__ == "__main__":
    unittest.main()
