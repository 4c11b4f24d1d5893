"""tenon.profile(): recordings and their formats."""

import gc
import json
import re

import numpy as np
import pytest

import tenon
from tenon import _compiler


def test_a_profile_has_the_calls_of_its_block(add, x, tmp_path):
    add(x, x)  # not recorded
    with tenon.profile() as p:
        for _ in range(3):
            add(x, x)
    (layer,) = p.layers()
    assert layer["calls"] == 3
    assert layer["timeMs"] > 0
    assert layer["bytes"] == 3 * 3 * x.nbytes
    assert layer["kernel"] in p.table()
    assert layer["kernel"] in p._repr_html_()


def test_formats_follow_the_name(add, x, tmp_path):
    with tenon.profile() as p:
        add(x, x)
    p.save(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())
    (node,) = [e for e in events if e["cat"] == "Node"]
    assert node["args"]["input_type_shape"] == [{"float": [4]}, {"float": [4]}]
    p.save(tmp_path / "t.html")
    assert "<!DOCTYPE html>" in (tmp_path / "t.html").read_text()
    p.save(tmp_path / "t.pftrace")
    with pytest.raises(tenon.UsageError, match="doesn't name a format"):
        p.save(tmp_path / "t.txt")
    assert not (tmp_path / "t.txt").exists()


def test_the_docstring_and_the_error_have_every_format(add, x):
    with tenon.profile() as p:
        add(x, x)
    formats = _compiler.call("tenon.record_formats")
    documented = " ".join(tenon.Profile.save.__doc__.split())
    with pytest.raises(tenon.UsageError) as error:
        p.save("t.foo")
    for one in formats:
        assert f"``t.{one['suffix'].lstrip('.')}``: {one['summary']}" in documented
        assert one["suffix"] in str(error.value)
    assert documented.count("``t.") == len(formats)


def page_of(p, tmp_path):
    p.save(tmp_path / "t.html")
    page = (tmp_path / "t.html").read_text()
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))


def test_a_page_tells_the_truth_about_its_program(add, x, tmp_path):
    with tenon.profile() as p:
        add(x, x)
    data = page_of(p, tmp_path)
    facts = dict(data["facts"])
    assert facts["Calls recorded"] == "1 of main"
    assert facts["Function main"].startswith("(")
    assert "was not run" not in json.dumps(data["missing"])
    assert "keep_graph=True" in data["withoutGraph"]


def test_a_page_without_a_call_says_so(tmp_path):
    with tenon.profile() as p:
        pass
    data = page_of(p, tmp_path)
    assert data["missing"]["layers"] == "The program was not run for this report."
    assert data["withoutGraph"] == "No program was called while this was recorded."


def test_perfetto_reads_the_trace(add, x, tmp_path):
    trace_pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    with tenon.profile() as p:
        add(x, x)
    p.save(tmp_path / "t.pftrace")
    trace = trace_pb2.Trace()
    trace.ParseFromString((tmp_path / "t.pftrace").read_bytes())
    names, open_slices = {}, 0
    for packet in trace.packet:
        names.update((n.iid, n.name) for n in packet.interned_data.event_names)
        if packet.HasField("track_event"):
            event = packet.track_event
            open_slices += {event.TYPE_SLICE_BEGIN: 1, event.TYPE_SLICE_END: -1}.get(event.type, 0)
    assert open_slices == 0
    assert p.layers()[0]["kernel"] in names.values()


def test_compiling_is_recorded_with_operations_of_kernels(x):
    with tenon.profile() as p:
        exe = tenon.compile(
            tenon.ir.parse("fn @main(%x: tensor[n; f32]) -> tensor[n; f32] { mul(%x, %x) }"), keep_graph=True
        )
        exe(x)
    assert p.layers()[0]["flops"] == 4
    names = {e["name"] for e in json.loads(p._as("t.json"))}
    assert {"simplify", "fuse_operators", "link", "load"} <= names


def test_an_exception_ends_the_recording(add, x):
    with pytest.raises(tenon.Error):
        with tenon.profile():
            add(x, np.zeros(3, "float32"))
    with tenon.profile() as p:
        add(x, x)
    assert len(p.layers()) == 1


def test_there_is_one_recording_at_a_time(add):
    with tenon.profile():
        with pytest.raises(tenon.UsageError, match="already in progress"):
            with tenon.profile():
                pass


def test_an_open_profile_has_no_results(add):
    with tenon.profile() as p:
        assert repr(p) == "<tenon.Profile, recording>"
        with pytest.raises(RuntimeError, match="leave its `with` block"):
            p.layers()


def test_a_recording_ends_with_its_profile(add, x):
    tenon.profile().__enter__()
    gc.collect()
    with tenon.profile() as p:
        add(x, x)
    assert len(p.layers()) == 1
