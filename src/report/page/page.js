'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);

// Every name in the page may come from a stranger's file: text is only ever set as text.
function make(tag, attributes = {}, ...children) {
  const svg = ['svg', 'g', 'rect', 'path', 'line', 'text', 'circle', 'title'].includes(tag);
  const node = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'on') for (const [event, f] of Object.entries(value)) node.addEventListener(event, f);
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

function scaled(value, units, step) {
  let i = 0;
  while (Math.abs(value) >= step && i + 1 < units.length) { value /= step; ++i; }
  return (value >= 100 || value === Math.round(value) ? value.toFixed(0) : value.toPrecision(3)) + ' ' + units[i];
}
const time = ns => scaled(ns, ['ns', 'µs', 'ms', 's'], 1000);
const bytes = n => scaled(n, ['B', 'KB', 'MB', 'GB', 'TB'], 1000);
const operations = n => n === null ? '' : scaled(n, ['', 'K', 'M', 'G', 'T'], 1000).trim();
const percent = x => x === null ? '' : (100 * x).toFixed(1) + ' %';

// ---- theme ----
const themes = ['auto', 'light', 'dark'];
let theme = 0;
$('theme').addEventListener('click', () => {
  theme = (theme + 1) % themes.length;
  if (theme) document.documentElement.dataset.theme = themes[theme];
  else delete document.documentElement.dataset.theme;
  $('theme').textContent = 'Theme: ' + themes[theme];
  drawTimeline();
});
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// ---- tooltip ----
const tip = $('tip');
function showTip(event, text) {
  tip.hidden = false;
  tip.textContent = text;
  tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + 'px';
  tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + 'px';
}
const hideTip = () => { tip.hidden = true; };
const tipped = text => ({ pointermove: e => showTip(e, text), pointerleave: hideTip });

// ---- summary ----
for (const [name, value] of data.facts) {
  $('facts').append(make('div', {}, make('dt', {}, name), make('dd', {}, value)));
}

// ---- details of a node or kernel ----
const kernels = new Map(data.kernels.map(k => [k.name, k]));
const layersOf = name => data.layers.filter(l => l.name === name);
function describe(title, node) {
  const out = $('details');
  out.replaceChildren(make('h2', {}, title));
  const row = (name, value) => { if (value) out.append(make('h3', {}, name), make('p', {}, value)); };
  const list = (name, values) => {
    if (!values || !values.length) return;
    out.append(make('h3', {}, name), make('ul', {}, ...values.map(v => make('li', {}, v))));
  };
  if (node) row('Value', node.type);
  const layers = layersOf(title);
  const sources = node ? node.sources : [...new Set(layers.flatMap(l => l.nodes))];
  list('ONNX nodes', sources);
  if (node) list('Constants', node.weights);
  if (layers.length) {
    const all = layers.reduce((sum, l) => sum + l.ns, 0), calls = layers.reduce((sum, l) => sum + l.calls, 0);
    row('Time', time(all) + ' in ' + calls + (calls === 1 ? ' call' : ' calls'));
    row('Operations of a call', operations(layers[0].flops === null ? null : layers[0].flops / layers[0].calls));
    row('Bytes of a call', bytes(layers[0].bytes / layers[0].calls));
    row('Share of the roofline', percent(layers[0].roofline));
    list('Inputs', layers[0].inputs);
    list('Outputs', layers[0].outputs);
  }
  const kernel = kernels.get(title);
  if (kernel) {
    out.append(make('h3', {}, 'IR'), kernel.text ? make('pre', { class: 'ir' }, kernel.text)
      : make('p', { class: 'quiet' }, data.withoutGraph));
    out.append(make('h3', {}, 'Assembly'), kernel.assembly ? make('pre', { class: 'assembly' }, kernel.assembly)
      : make('p', { class: 'quiet' }, 'There is no native code of this kernel for this machine to show.'));
  }
  out.scrollTop = 0;
}

// ---- graph ----
const canvas = $('canvas');
let view = null, shown = 'after', drawing = null;
function setView() { if (drawing) drawing.setAttribute('viewBox', [view.x, view.y, view.w, view.h].join(' ')); }
function fit() {
  if (!drawing) return;
  const w = drawing.dataset.width * 1, h = drawing.dataset.height * 1;
  const box = canvas.getBoundingClientRect(), ratio = box.width / box.height;
  // A long graph begins at its top, legibly.
  const width = Math.min(Math.max(w, h * ratio), Math.max(w, box.width * 1.4));
  view = { w: width, h: width / ratio, x: (w - width) / 2, y: Math.min(0, (h - width / ratio) / 2) };
  setView();
}
function zoom(factor, cx = .5, cy = .5) {
  if (!view) return;
  const w = Math.min(Math.max(view.w * factor, 40), 400000), h = view.h * w / view.w;
  view.x += (view.w - w) * cx;
  view.y += (view.h - h) * cy;
  view.w = w;
  view.h = h;
  setView();
}
function showGraph(which) {
  shown = which;
  const template = $('svg-' + which);
  for (const name of ['before', 'after']) $('show-' + name).setAttribute('aria-pressed', String(name === which));
  canvas.replaceChildren();
  drawing = null;
  if (!template) {
    canvas.append(make('p', { class: 'quiet', style: 'padding: 16px' }, data.withoutGraph));
    return;
  }
  canvas.append(template.content.cloneNode(true));
  drawing = canvas.querySelector('svg');
  drawing.dataset.width = drawing.getAttribute('width');
  drawing.dataset.height = drawing.getAttribute('height');
  drawing.removeAttribute('width');
  drawing.removeAttribute('height');
  fit();
  search();
}
const nodesOf = which => data.graphs[which] || [];
function choose(element) {
  for (const old of canvas.querySelectorAll('.chosen')) old.classList.remove('chosen');
  element.classList.add('chosen');
  const node = nodesOf(shown)[element.dataset.node];
  describe(node.label, node);
}
function centreOn(element) {
  const box = element.getBBox(), group = element.parentNode.transform.baseVal.consolidate();
  view.x = box.x + box.width / 2 + (group ? group.matrix.e : 0) - view.w / 2;
  view.y = box.y + box.height / 2 + (group ? group.matrix.f : 0) - view.h / 2;
  setView();
}
let hits = [], hit = 0;
function search() {
  const wanted = $('search').value.trim().toLowerCase();
  hits = [];
  hit = 0;
  for (const element of canvas.querySelectorAll('.node')) {
    const node = nodesOf(shown)[element.dataset.node];
    const found = wanted && [node.label, node.type, ...node.sources].some(t => t.toLowerCase().includes(wanted));
    element.classList.toggle('found', Boolean(found));
    element.classList.toggle('dim', Boolean(wanted) && !found);
    if (found) hits.push(element);
  }
  $('hits').textContent = wanted ? hits.length + (hits.length === 1 ? ' node' : ' nodes') : '';
  if (hits.length) centreOn(hits[0]);
}
$('search').addEventListener('input', search);
$('search').addEventListener('keydown', e => {
  if (e.key !== 'Enter' || !hits.length) return;
  choose(hits[hit % hits.length]);
  centreOn(hits[hit++ % hits.length]);
});
$('show-before').addEventListener('click', () => showGraph('before'));
$('show-after').addEventListener('click', () => showGraph('after'));
$('zoom-in').addEventListener('click', () => zoom(.7));
$('zoom-out').addEventListener('click', () => zoom(1 / .7));
$('zoom-fit').addEventListener('click', fit);
canvas.addEventListener('wheel', e => {
  e.preventDefault();
  const box = canvas.getBoundingClientRect();
  zoom(Math.exp(e.deltaY * .0015), (e.clientX - box.left) / box.width, (e.clientY - box.top) / box.height);
}, { passive: false });
let drag = null;
canvas.addEventListener('pointerdown', e => { if (view) drag = { x: e.clientX, y: e.clientY, moved: false, id: e.pointerId }; });
canvas.addEventListener('pointermove', e => {
  if (!drag) return;
  const scale = view.w / canvas.clientWidth;
  if (!drag.moved && Math.hypot(e.clientX - drag.x, e.clientY - drag.y) < 4) return;
  if (!drag.moved) { drag.moved = true; canvas.setPointerCapture(drag.id); canvas.classList.add('dragging'); }
  view.x -= (e.clientX - drag.x) * scale;
  view.y -= (e.clientY - drag.y) * scale;
  drag.x = e.clientX;
  drag.y = e.clientY;
  setView();
});
canvas.addEventListener('pointerup', () => { setTimeout(() => { drag = null; canvas.classList.remove('dragging'); }); });
canvas.addEventListener('click', e => {
  if (drag && drag.moved) return;
  const element = e.target.closest('.node');
  if (element) choose(element);
  const cut = e.target.closest('.cut');
  if (!cut) return;
  const other = canvas.querySelector('.node[data-node="' + cut.dataset.to + '"]');
  choose(other);
  centreOn(other);
});

// ---- table of kernels ----
let order = 'ns', downwards = true;
const columns = [
  ['name', 'Kernel or function', l => l.name], ['nodes', 'ONNX nodes', l => l.nodes.join(', ')],
  ['calls', 'Calls', l => l.calls], ['ns', 'Time', l => time(l.ns)], ['share', 'Share', l => l.share],
  ['each', 'Per call', l => time(l.ns / l.calls)], ['bytes', 'Bytes', l => bytes(l.bytes / l.calls)],
  ['flops', 'Operations', l => operations(l.flops === null ? null : l.flops / l.calls)],
  ['rate', 'per second', l => operations(l.flops === null ? null : l.flops / (l.ns * 1e-9))],
  ['roofline', 'Roofline', l => percent(l.roofline)],
];
const valueOf = (l, key) => key === 'each' ? l.ns / l.calls : key === 'rate' ? (l.flops || 0) / l.ns
  : key === 'nodes' ? l.nodes.join(', ') : l[key];
function drawTable() {
  const rows = [...data.layers].sort((a, b) => {
    const x = valueOf(a, order), y = valueOf(b, order);
    const less = typeof x === 'string' ? x.localeCompare(y) : (x ?? -1) - (y ?? -1);
    return downwards ? -less : less;
  });
  const heading = make('tr', {}, ...columns.map(([key, title], i) => make('th', {
    class: i > 1 ? 'n' : '', 'aria-sort': key === order ? (downwards ? 'descending' : 'ascending') : 'none',
    on: { click: () => { downwards = key === order ? !downwards : i > 1; order = key; drawTable(); } },
  }, title + (key === order ? (downwards ? ' ↓' : ' ↑') : ''))));
  const body = rows.map(l => make('tr', { on: { click: () => { describe(l.name, null); $('graph').scrollIntoView({ block: 'start' }); } } },
    ...columns.map(([key, , text], i) => {
      if (key !== 'share') return make('td', { class: i > 1 ? 'n' : 'name' }, String(text(l)));
      const filled = make('i', { style: 'width:' + (100 * l.share) + '%' });
      return make('td', { class: 'n' }, make('span', { class: 'meter' }, filled), percent(l.share));
    })));
  $('layers').replaceChildren(make('thead', {}, heading), make('tbody', {}, ...body));
}

// ---- timeline ----
const lanes = [];
const surface = $('timeline');
let span = null, placed = [];
function prepareTimeline() {
  const line = data.timeline;
  if (!line) return;
  const open = [];
  for (const interval of line.intervals) {
    const [thread, begin, end] = interval;
    const stack = open[thread] = open[thread] || [];
    while (stack.length && stack[stack.length - 1] <= begin) stack.pop();
    interval.depth = stack.length;
    stack.push(end);
    lanes[thread] = Math.max(lanes[thread] || 0, stack.length);
  }
  const spread = Math.max(line.ns, 1);
  span = { from: 0, to: spread };
}
function drawTimeline() {
  const line = data.timeline;
  if (!line) return;
  const ratio = devicePixelRatio || 1, width = surface.clientWidth, row = 20, top = 24;
  const tops = [];
  let height = top;
  lanes.forEach((count, thread) => { tops[thread] = height + 16; height += 16 + count * row + 8; });
  surface.style.height = height + 'px';
  surface.width = width * ratio;
  surface.height = height * ratio;
  const pen = surface.getContext('2d');
  pen.scale(ratio, ratio);
  pen.clearRect(0, 0, width, height);
  pen.font = '11px system-ui, sans-serif';
  const x = ns => (ns - span.from) / (span.to - span.from) * width;
  const step = 10 ** Math.floor(Math.log10((span.to - span.from) / 4));
  pen.fillStyle = colour('--quiet');
  pen.strokeStyle = colour('--line');
  for (let at = Math.ceil(span.from / step) * step; at < span.to; at += step) {
    if ((span.to - span.from) / step > 12 && Math.round(at / step) % 5) continue;
    pen.beginPath();
    pen.moveTo(x(at), 14);
    pen.lineTo(x(at), height);
    pen.stroke();
    pen.fillText(time(at), x(at) + 3, 12);
  }
  line.threads.forEach((name, thread) => { if (tops[thread]) pen.fillText(name, 6, tops[thread] - 4); });
  placed = [];
  const shades = Object.fromEntries(Object.entries(line.categories).map(([kind, category]) => [kind, colour('--' + category)]));
  for (const interval of line.intervals) {
    const [thread, begin, end, kind, name] = interval;
    if (end < span.from || begin > span.to) continue;
    const left = Math.max(x(begin), -2), right = Math.min(x(end), width + 2);
    const y = tops[thread] + interval.depth * row;
    pen.fillStyle = shades[kind];
    pen.globalAlpha = .85;
    pen.fillRect(left, y, Math.max(right - left - .5, .6), row - 3);
    pen.globalAlpha = 1;
    placed.push([left, y, Math.max(right - left, 2), interval]);
    if (right - left > 34) {
      pen.save();
      pen.beginPath();
      pen.rect(left, y, right - left - 4, row);
      pen.clip();
      pen.fillStyle = '#fff';
      pen.fillText(name, Math.max(left, 0) + 4, y + 12);
      pen.restore();
    }
  }
}
function intervalAt(e) {
  const box = surface.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
  for (let i = placed.length; i-- > 0;) {
    const [left, top, width, interval] = placed[i];
    if (x >= left && x <= left + width && y >= top && y <= top + 17) return interval;
  }
  return null;
}
function moveSpan(from, to) {
  const length = Math.min(Math.max(to - from, 100), data.timeline.ns * 1.02);
  const begin = Math.min(Math.max(from, -data.timeline.ns * .01), data.timeline.ns * 1.01 - length);
  span = { from: begin, to: begin + length };
  drawTimeline();
}
surface.addEventListener('wheel', e => {
  e.preventDefault();
  const box = surface.getBoundingClientRect(), at = (e.clientX - box.left) / box.width, length = span.to - span.from;
  const longer = length * Math.exp(e.deltaY * .0015), fixed = span.from + at * length;
  moveSpan(fixed - at * longer, fixed + (1 - at) * longer);
}, { passive: false });
let sweep = null;
surface.addEventListener('pointerdown', e => { sweep = e.clientX; surface.setPointerCapture(e.pointerId); });
surface.addEventListener('pointerup', () => { sweep = null; });
surface.addEventListener('pointermove', e => {
  if (sweep !== null) {
    const shift = (sweep - e.clientX) / surface.clientWidth * (span.to - span.from);
    sweep = e.clientX;
    return moveSpan(span.from + shift, span.to + shift);
  }
  const found = intervalAt(e);
  if (found) showTip(e, found[4] + '\n' + time(found[2] - found[1]) + ', from ' + time(found[1])); else hideTip();
});
surface.addEventListener('pointerleave', hideTip);
surface.addEventListener('dblclick', e => {
  const found = intervalAt(e);
  if (found) moveSpan(found[1] - (found[2] - found[1]) * .05, found[2] + (found[2] - found[1]) * .05);
});
$('whole').addEventListener('click', () => moveSpan(0, data.timeline.ns));
$('run').addEventListener('click', () => {
  const calls = data.timeline.intervals.filter(([, , , kind]) => kind === 'entry');
  if (calls.length) { const last = calls[calls.length - 1]; moveSpan(last[1], last[2]); }
});

// ---- plots ----
function plot(id, width, height, left = 64, bottom = 30) {
  const svg = $(id);
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  const add = (tag, attributes, ...children) => { const n = make(tag, attributes, ...children); svg.append(n); return n; };
  add('path', { class: 'axis', fill: 'none', d: `M${left} 8V${height - bottom}H${width - 8}` });
  return { svg, add, left, bottom, width, height, right: width - 12, top: 12, floor: height - bottom };
}
function drawMemory() {
  const samples = data.memory;
  if (!samples.length) return;
  const p = plot('memory', 1000, 240), most = Math.max(...samples.map(s => s[1]), 1);
  const first = samples[0][0], length = Math.max(samples[samples.length - 1][0] - first, 1);
  const x = ns => p.left + (ns - first) / length * (p.right - p.left), y = n => p.floor - n / most * (p.floor - p.top);
  let d = `M${x(first)} ${p.floor}`, last = 0;
  for (const [ns, n] of samples) { d += `L${x(ns)} ${y(last)}L${x(ns)} ${y(n)}`; last = n; }
  p.add('path', { class: 'area', d: d + `L${x(first + length)} ${p.floor}Z` });
  for (const part of [0, .5, 1]) {
    p.add('text', { x: p.left - 6, y: y(most * part) + 4, 'text-anchor': 'end' }, bytes(most * part));
    p.add('text', { x: x(first + length * part), y: p.height - 10, 'text-anchor': part ? (part === 1 ? 'end' : 'middle') : 'start' }, time(first + length * part));
  }
}
function drawArena() {
  const arena = data.arena;
  if (!arena) return;
  const p = plot('arena', 1000, 300), most = Math.max(...arena.slots.map(s => s.offset + s.bytes), 1), end = Math.max(arena.end, 1);
  const x = at => p.left + at / end * (p.right - p.left), y = n => p.floor - n / most * (p.floor - p.top);
  for (const s of arena.slots) {
    const text = `${s.name}\n${bytes(s.bytes)} at ${s.offset}\nalive from step ${s.from} to ${s.to}`;
    p.add('rect', { class: 'slot', x: x(s.from), width: Math.max(x(s.to + 1) - x(s.from), 1.5), y: y(s.offset + s.bytes),
      height: Math.max(y(s.offset) - y(s.offset + s.bytes), 1), on: tipped(text) });
  }
  for (const part of [0, .5, 1]) p.add('text', { x: p.left - 6, y: y(most * part) + 4, 'text-anchor': 'end' }, bytes(most * part));
  p.add('text', { x: (p.left + p.right) / 2, y: p.height - 10, 'text-anchor': 'middle' }, 'steps of the program');
}
function drawRoofline() {
  const peak = data.peak, points = data.layers.filter(l => l.flops > 0 && l.bytes > 0 && l.ns > 0);
  if (!peak || !points.length) return;
  const p = plot('roofline', 1000, 380), log = Math.log10;
  const intensity = l => l.flops / l.bytes, rate = l => l.flops / (l.ns * 1e-9), ridge = peak.flops / peak.bytes;
  const xs = [...points.map(intensity), ridge * 4], ys = [...points.map(rate), peak.flops * 1.4];
  const x0 = Math.floor(log(Math.min(...xs))), x1 = Math.ceil(log(Math.max(...xs)));
  const y0 = Math.floor(log(Math.min(...ys))), y1 = Math.ceil(log(Math.max(...ys)));
  const x = v => p.left + (log(v) - x0) / (x1 - x0) * (p.right - p.left), y = v => p.floor - (log(v) - y0) / (y1 - y0) * (p.floor - p.top);
  for (let e = x0; e <= x1; ++e) p.add('text', { x: x(10 ** e), y: p.height - 10, 'text-anchor': 'middle' }, '10' + sup(e));
  for (let e = y0; e <= y1; ++e) p.add('text', { x: p.left - 6, y: y(10 ** e) + 4, 'text-anchor': 'end' }, operations(10 ** e) + '/s');
  p.add('text', { x: p.right, y: p.floor - 6, 'text-anchor': 'end' }, 'operations per byte');
  const from = 10 ** Math.max(x0, y0 - log(peak.bytes));
  p.add('path', { class: 'roof', d: `M${x(from)} ${y(from * peak.bytes)}L${x(ridge)} ${y(peak.flops)}L${p.right} ${y(peak.flops)}` });
  p.add('text', { x: p.right, y: y(peak.flops) - 6, 'text-anchor': 'end' }, operations(peak.flops) + '/s, ' + bytes(peak.bytes) + '/s');
  const all = points.reduce((sum, l) => sum + l.ns, 0);
  for (const l of points) {
    p.add('circle', { class: 'dot' + (l.isKernel ? '' : ' library'), cx: x(intensity(l)), cy: y(rate(l)), r: 4 + 22 * Math.sqrt(l.ns / all),
      on: { ...tipped(`${l.name}\n${l.nodes.join(', ')}\n${operations(rate(l))}/s, ${percent(l.roofline)} of the roofline`),
        click: () => { describe(l.name, null); $('graph').scrollIntoView({ block: 'start' }); } } });
  }
}
const sup = n => String(n).replace(/./g, c => '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'['-0123456789'.indexOf(c)]);

// ---- limits ----
for (const [name, used, limit] of data.limits) {
  $('limits').append(make('tr', {}, make('td', {}, name), make('td', { class: 'n' }, used), make('td', { class: 'n' }, limit)));
}

// Sections without data say why.
for (const [id, has] of [['timeline', data.timeline], ['memory', data.memory.length], ['arena', data.arena],
  ['roofline', data.layers.some(l => l.flops > 0)], ['layers', data.layers.length], ['limits', data.limits.length]]) {
  const block = $(id).closest('.block');
  if (!has) block.replaceChildren(make('p', { class: 'quiet' }, data.missing[id]));
}
prepareTimeline();
drawTable();
drawTimeline();
drawMemory();
drawArena();
drawRoofline();
showGraph('after');
addEventListener('resize', drawTimeline);
document.body.dataset.ready = 'true';
