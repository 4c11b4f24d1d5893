(* OCaml's rows, as JSON: nanoseconds of CPU time per operation, the median of several; the programs are
   those of programs.tn. compare.py builds this with ocamlopt and with ocamlc. With "depth": how deep a
   recursion gets. *)
let opaque = Sys.opaque_identity

let median count f =
  let once _ =
    let start = Sys.time () in
    f ();
    (Sys.time () -. start) /. float count *. 1e9
  in
  List.nth (List.sort compare (List.init 5 once)) 2

let[@inline never] callee x = x

let[@inline never] calls n =
  let x = ref (opaque 1) and i = ref 0 in
  while !i < n do
    x := callee !x;
    x := callee !x;
    x := callee !x;
    x := callee !x;
    x := callee !x;
    x := callee !x;
    x := callee !x;
    x := callee !x;
    i := !i + 8
  done;
  !x

let[@inline never] loop n =
  let i = ref 0 in
  while !i < n do incr i done;
  !i

let[@inline never] sum n =
  let i = ref 0 and s = ref 0 in
  while !i < n do
    s := !s + !i;
    incr i
  done;
  !s

let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2)
let rec down n = if n > 0 then down (n - 1) + 1 else n

let[@inline never] list_fold n f xs =
  let sum = ref 0 in
  for _ = 1 to n do sum := List.fold_left f !sum xs done;
  !sum

let[@inline never] adder k x = x + k

let[@inline never] closure n f =
  let x = ref 0 and i = ref 0 in
  while !i < n do
    x := f !x;
    x := f !x;
    x := f !x;
    x := f !x;
    x := f !x;
    x := f !x;
    x := f !x;
    x := f !x;
    i := !i + 8
  done;
  !x

type code =
  | Add of int * code
  | Subtract of int * code
  | From of int * code
  | Least of int * code
  | Most of int * code
  | And of int * code
  | Or of int * code
  | Halt

let rec code i n c =
  if i = n then c
  else
    code (i + 1) n
      (match i mod 7 with
      | 0 -> Add (5, c)
      | 1 -> Most (-60, c)
      | 2 -> Or (9, c)
      | 3 -> Subtract (3, c)
      | 4 -> And (-5, c)
      | 5 -> Least (70, c)
      | _ -> From (20, c))

let rec step (x : int) = function
  | Add (k, rest) -> step (x + k) rest
  | Subtract (k, rest) -> step (x - k) rest
  | From (k, rest) -> step (k - x) rest
  | Least (k, rest) -> step (if k < x then k else x) rest
  | Most (k, rest) -> step (if k > x then k else x) rest
  | And (k, rest) -> step (x land k) rest
  | Or (k, rest) -> step (x lor k) rest
  | Halt -> x

let[@inline never] match8 n c =
  let x = ref 0 in
  for _ = 1 to n do x := step !x c done;
  !x

let[@inline never] f64_loop most re im =
  let i = ref 0 and x = ref 0.0 and y = ref 0.0 in
  while (!x *. !x) +. (!y *. !y) <= 4.0 && !i < most do
    let d = (!x *. !x) -. (!y *. !y) and xy = !x *. !y in
    x := d +. re;
    y := xy +. xy +. im;
    incr i
  done;
  !i

(* The greatest depth that returns, by bisection. *)
let print_depth () =
  let least = ref 1 and most = ref 1_000_001 and ending = ref "reached" in
  while !least + 1 < !most do
    let middle = (!least + !most) / 2 in
    match down middle with
    | _ -> least := middle
    | exception Stack_overflow ->
        most := middle;
        ending := "Stack_overflow"
  done;
  Printf.printf "{\"depth\": %d, \"end\": \"%s\"}\n" !least !ending

let print_rows () =
  let n = 2_000_000 and cells = 1001 and walks = 1999 in
  let xs = opaque (List.init cells succ) and plus = opaque ( + ) in
  let program = opaque (code 0 cells Halt) and add3 = opaque (adder 3) in
  let rows =
    [
      ("call", n, fun () -> assert (calls n = 1));
      ("loop", n, fun () -> assert (loop n = n));
      ("sum", n, fun () -> assert (sum n = n * (n - 1) / 2));
      ("fib", 635621, fun () -> assert (fib 27 = 196418));
      ("list_fold", walks * cells, fun () -> assert (list_fold walks plus xs = walks * 501501));
      ("closure", n, fun () -> assert (closure n add3 = 3 * n));
      ("match8", walks * cells, fun () -> assert (match8 walks program = 18));
      ("f64_loop", n, fun () -> assert (f64_loop n (-0.5) 0.25 = n));
    ]
  in
  let row (key, count, f) = Printf.sprintf "\"%s\": %.3f" key (median count f) in
  Printf.printf "{\"version\": \"%s\", \"rows\": {%s}}\n" Sys.ocaml_version
    (String.concat ", " (List.map row rows))

let () = if Array.length Sys.argv > 1 then print_depth () else print_rows ()
