#!/usr/bin/env python3
"""Opens the page of `tenon report` in a headless Chromium and clicks through it.

Usage: page_test.py TENON. Skipped (exit code 77) without selenium, chromedriver and Chromium.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    print("skipped: the Python package selenium is not installed")
    sys.exit(77)

BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
if not BROWSER or not DRIVER:
    print("skipped: there is no Chromium with chromedriver")
    sys.exit(77)

TENON = sys.argv.pop(1)
DIGITS = pathlib.Path(__file__).parents[2] / "examples/digits/digits.onnx"
HOSTILE = "</script><img src=x onerror=document.body.dataset.hacked=1>"
PROGRAM = f"""fn @main(%"{HOSTILE}": tensor[4, 8; f32]) -> tensor[4, 8; f32] {{
  %0 = exp(%"{HOSTILE}")
  %1 = softmax(%0, axis=1)
  %1
}}
"""


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        options = webdriver.ChromeOptions()
        options.binary_location = BROWSER
        for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = webdriver.ChromeService(executable_path=DRIVER)
        cls.browser = webdriver.Chrome(options=options, service=service)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.folder.cleanup()

    def tearDown(self):
        severe = [entry for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]
        self.assertEqual(severe, [])
        fetched = self.browser.execute_script("return performance.getEntriesByType('resource').length")
        self.assertEqual(fetched, 0)

    def open(self, file, *arguments):
        page = pathlib.Path(self.folder.name) / f"{self.id()}.html"
        command = [TENON, "report", "-q", str(file), "-o", str(page), "--threads", "1", *arguments]
        subprocess.run(command, check=True, timeout=120)
        self.browser.get(page.as_uri())
        WebDriverWait(self.browser, 20).until(lambda b: self.find("body").get_attribute("data-ready"))

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def node(self, text):
        (found,) = [n for n in self.all("#canvas .node") if text in n.text]
        return found

    def view(self):
        return [float(x) for x in self.find("#canvas svg").get_dom_attribute("viewBox").split()]

    def test_a_click_on_a_kernel_shows_its_nodes_ir_and_assembly(self):
        self.open(DIGITS)
        self.node("fused_relu_max_pool").click()
        details = self.find("#details").text
        self.assertIn("/relu2", details)
        self.assertIn("/pool", details)
        self.assertIn("compute", self.find("#details .ir").text)
        self.assertIn("ret", self.find("#details .assembly").text)

    def test_the_graph_before_compilation_has_the_names_of_onnx(self):
        self.open(DIGITS)
        after = len(self.all("#canvas .node"))
        self.find("#show-before").click()
        self.assertGreater(len(self.all("#canvas .node")), after)
        self.node("/bn1").click()
        self.assertIn("batch_norm", self.find("#details").text)

    def test_search_marks_and_centres_nodes(self):
        self.open(DIGITS)
        before = self.view()
        self.find("#search").send_keys("softmax")
        self.assertEqual(self.find("#hits").text, "1 node")
        self.assertEqual(len(self.all("#canvas .node.found")), 1)
        self.assertNotEqual(self.view(), before)
        self.find("#search").send_keys(Keys.ENTER)
        self.assertIn("softmax", self.find("#details h2").text)

    def test_zoom(self):
        self.open(DIGITS)
        before = self.view()
        self.find("#zoom-in").click()
        self.assertLess(self.view()[2], before[2])
        self.find("#zoom-fit").click()
        self.assertEqual(self.view(), before)

    def test_the_table_sorts_and_its_rows_lead_to_kernels(self):
        self.open(DIGITS)
        self.all("#layers th")[0].click()
        names = [row.find_element(By.TAG_NAME, "td").text for row in self.all("#layers tbody tr")]
        self.assertEqual(names, sorted(names))
        self.all("#layers tbody tr")[0].click()
        self.assertEqual(self.find("#details h2").text, names[0])

    def test_every_section_has_content(self):
        self.open(DIGITS, "--dim", "batch=2")
        self.assertGreater(len(self.all("#facts div")), 4)
        self.assertTrue(self.all("#memory .area"))
        self.assertGreater(len(self.all("#arena .slot")), 2)
        self.assertGreater(len(self.all("#roofline .dot")), 3)
        self.assertTrue(self.all("#roofline .roof"))
        self.assertEqual(len(self.all("#limits tr")), 3)
        drawn = "const c = document.getElementById('timeline'); return new Set(c.getContext('2d')" \
                ".getImageData(0, 0, c.width, c.height).data).size"
        self.assertGreater(self.browser.execute_script(drawn), 10)
        self.find("#run").click()
        self.assertGreater(self.browser.execute_script(drawn), 10)

    def test_light_and_dark(self):
        self.open(DIGITS)
        colour = "return getComputedStyle(document.body).backgroundColor"
        self.find("#theme").click()
        light = self.browser.execute_script(colour)
        self.find("#theme").click()
        self.assertNotEqual(self.browser.execute_script(colour), light)

    def test_hostile_names_are_only_text(self):
        program = pathlib.Path(self.folder.name) / "hostile.tn"
        program.write_text(PROGRAM)
        self.open(program)
        self.find("#show-before").click()
        self.node("</script>").click()
        self.assertIn(HOSTILE, self.find("#details h2").text)
        self.assertIsNone(self.find("body").get_attribute("data-hacked"))
        self.assertEqual(self.all("img"), [])

    def test_a_file_without_its_graph_says_so(self):
        compiled = pathlib.Path(self.folder.name) / "digits.tnx"
        subprocess.run([TENON, "compile", "-q", str(DIGITS), "-o", str(compiled)], check=True, timeout=120)
        self.open(compiled)
        self.node("fused_relu_max_pool").click()
        self.assertIn("--keep-graph", self.find("#details").text)
        self.find("#show-before").click()
        self.assertIn("--keep-graph", self.find("#canvas").text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
