"""What the memory benchmarks call wrong: python3 tests/benchmarks/measured_run_test.py"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks"))
import largest_model  # noqa: E402
import measured_run  # noqa: E402


def planned(peak, **more):
    return {"ranks": [{"rank": 0, "peak_bytes": peak, **more}]}


def taken(measured, **more):
    return [{"rank": 0, "measured_bytes": measured, "resident_bytes": 3 * measured, **more}]


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
