# referring_files.sh PROGRAM: writes two programs that refer to other files, and copies of those.
#   p.tn  imports one.tn, a copy of which is before.tn
#   a.tn  PROGRAM with its constants in b.tn.weights, a copy of which is before.weights
set -e
printf 'fn @one() -> i64 { 1 }\n' | tee one.tn > before.tn
printf 'import "one.tn" as l\nfn @main() -> i64 { @l.one() }\n' > p.tn
tenon opt "$1" --passes fold_constants -o b.tn
cp b.tn.weights before.weights
mv b.tn a.tn
