"""What the memory benchmarks call wrong: python3 tests/benchmarks/measured_run_test.py"""

import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks"))
import largest_model  # noqa: E402
import measured_run  # noqa: E402


def planned(peak, **more):
    return {"ranks": [{"rank": 0, "peak_bytes": peak, **more}]}


def taken(measured, **more):
    return [{"rank": 0, "measured_bytes": measured, "resident_bytes": 3 * measured, **more}]


class Arguments(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        self.run_file = pathlib.Path(folder.name, "run.json").resolve()
        self.run_file.write_text("{}")

    def parsed(self, *words):
        parser = measured_run.arguments("", "/gone.json")
        return parser.parse_args(["--sherd", "true", "run.json", *words])

    def refusal(self, *words):
        said = io.StringIO()
        with self.assertRaises(SystemExit) as end, contextlib.redirect_stderr(said):
            self.parsed(*words)
        self.assertEqual(end.exception.code, 2)
        return said.getvalue()

    def test_paths_are_the_callers(self):
        self.assertEqual(self.parsed().run_file, self.run_file)
        self.assertEqual(measured_run.call(["pwd", "-P"]).strip(), str(self.run_file.parent))

    def test_a_run_file_that_is_not_there_is_told(self):
        said = io.StringIO()
        for words in (["gone.json"], ["."], [""], []):
            with self.assertRaises(SystemExit) as end, contextlib.redirect_stderr(said):
                measured_run.arguments("", "/gone.json").parse_args(["--sherd", "true", *words])
            self.assertEqual(end.exception.code, 2)
        self.assertIn("there is no file gone.json", said.getvalue())

    def test_a_command_that_is_not_there_is_told(self):
        for name in ("no/sherd", "no-such-sherd", ".", "run.json", ""):
            self.assertIn(f"argument --sherd: there is no command {name}",
                          self.refusal("--sherd", name))

    def test_a_place_that_cannot_be_written_is_told_before_anything_runs(self):
        self.assertIn("argument --output: cannot write no/table.md: No such file",
                      self.refusal("--output", "no/table.md"))
        self.assertIn("Is a directory", self.refusal("--output", "."))
        self.assertIn("Is a directory", self.refusal("--output", ""))
        self.parsed("--output", "table.md")
        self.assertFalse(pathlib.Path("table.md").exists())
        pathlib.Path("table.md").write_text("kept")
        self.parsed("--output", "table.md")
        self.assertEqual(pathlib.Path("table.md").read_text(), "kept")

    def test_what_fails_ends_with_its_own_code(self):
        said = io.StringIO()
        for command, code in ((["sh", "-c", "echo why; exit 2"], 2), (["no-such-mpirun"], 2),
                              (["sh", "-c", "kill -9 $$"], 1)):
            with self.assertRaises(SystemExit) as end, contextlib.redirect_stderr(said):
                measured_run.call(command)
            self.assertEqual(end.exception.code, code)
        self.assertIn("exit code 2\nwhy", said.getvalue())
        self.assertIn("cannot run no-such-mpirun: No such file", said.getvalue())


class Complaints(unittest.TestCase):
    def test_what_was_planned_is_well(self):
        self.assertEqual(measured_run.complaints(planned(100, memory_bytes=100), taken(100)), [])

    def test_a_byte_more_or_less_is_told(self):
        for measured in (99, 101):
            found = measured_run.complaints(planned(100), taken(measured))
            self.assertEqual(found, [f"rank 0 took {measured} bytes, planned were 100"])

    def test_a_budget_that_is_exceeded_is_told(self):
        found = measured_run.complaints(planned(100, memory_bytes=99), taken(100))
        self.assertEqual(found, ["rank 0 took 100 of 99 bytes"])

    def test_every_rank_needs_a_plan(self):
        with self.assertRaises(ValueError):
            measured_run.complaints(planned(100), taken(100) + taken(100))


class Alike(unittest.TestCase):
    def test_neighbours_share_a_row_that_shows_the_most(self):
        plan = {"ranks": [{"peak_bytes": peak} for peak in (5, 5, 7, 5)]}
        ranks = [{"rank": rank, "measured_bytes": peak, "resident_bytes": 10 + rank}
                 for rank, peak in enumerate((5, 5, 7, 5))]
        rows = [(name, predicted["peak_bytes"], shown["resident_bytes"])
                for name, predicted, shown in measured_run.alike(plan, ranks)]
        self.assertEqual(rows, [("0-1", 5, 11), ("2", 7, 12), ("3", 5, 13)])


class Reserve(unittest.TestCase):
    def test_libraries_may_take_the_reserve_and_no_more(self):
        usable = {"free_bytes": 900, "reserve_bytes": 50}  # of 1000: 100 are the driver's
        for libraries, problems in ((50, 0), (51, 1)):
            ranks = taken(700, device_bytes=1000, device_used_bytes=700 + 100 + libraries)
            self.assertEqual(len(list(largest_model.reserve_problems(usable, ranks))), problems)

    def test_on_cpus_there_is_none(self):
        self.assertEqual(list(largest_model.reserve_problems(None, taken(700))), [])


if __name__ == "__main__":
    unittest.main()
