"""tenon.profile(): recordings and their formats."""

import json

import numpy as np
import pytest

import tenon


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
