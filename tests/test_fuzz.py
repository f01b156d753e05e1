"""A few of the damaged and hostile files of `make chaos`: each is read, or refused in plain lines."""

from chaos import fuzz


def test_no_damaged_or_hostile_file_ends_in_a_traceback(tmp_path):
    cases = {"configurations": 80, "network files": 80, "state dicts": 50, "arrays": 50, "inputs": 40}
    for what, _, failures, remark in fuzz.in_this_process(1, tmp_path, cases):
        assert failures == 0, f"{what}: {remark}"
