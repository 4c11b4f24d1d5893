;; Chez Scheme's rows, as JSON: nanoseconds of CPU time per operation, the median of several; the programs
;; are those of programs.tn. `chezscheme --script` compiles this, `petite --script` interprets it. With
;; "depth": how deep a recursion gets.

(define (median count f)
  (define (once)
    (let ([start (current-time 'time-thread)])
      (f)
      (let ([taken (time-difference (current-time 'time-thread) start)])
        (/ (+ (* 1e9 (time-second taken)) (time-nanosecond taken)) count))))
  (list-ref (sort < (list (once) (once) (once) (once) (once))) 2))

;; The compiler can't see through a set! variable.
(define callee (lambda (x) x))
(set! callee callee)

(define (calls n)
  (do ([i 0 (fx+ i 8)]
       [x 1 (callee (callee (callee (callee (callee (callee (callee (callee x))))))))])
      ((fx>= i n) x)))

(define (loop n)
  (let again ([i 0])
    (if (fx< i n) (again (fx+ i 1)) i)))

(define (sum n)
  (let again ([i 0] [s 0])
    (if (fx< i n) (again (fx+ i 1) (fx+ s i)) s)))

(define (fib n)
  (if (fx< n 2) n (fx+ (fib (fx- n 1)) (fib (fx- n 2)))))

(define (down n)
  (if (fx> n 0) (fx+ (down (fx- n 1)) 1) n))

(define (fold f start xs)
  (if (null? xs) start (fold f (f start (car xs)) (cdr xs))))

(define (list-fold n f xs)
  (do ([i 0 (fx+ i 1)] [s 0 (fold f s xs)]) ((fx= i n) s)))

(define (adder k) (lambda (x) (fx+ x k)))

(define (closure n f)
  (do ([i 0 (fx+ i 8)] [x 0 (f (f (f (f (f (f (f (f x))))))))])
      ((fx>= i n) x)))

;; A cell of the program is a vector of the tag, the operand and the rest.
(define (code n)
  (define cycle '#((0 . 5) (4 . -60) (6 . 9) (1 . 3) (5 . -5) (3 . 70) (2 . 20)))
  (let again ([i 0] [c (vector 7)])
    (if (fx= i n)
        c
        (let ([operation (vector-ref cycle (fxmod i 7))])
          (again (fx+ i 1) (vector (car operation) (cdr operation) c))))))

(define (step x c)
  (define-syntax next
    (syntax-rules ()
      [(_ k e) (let ([k (vector-ref c 1)]) (step e (vector-ref c 2)))]))
  (case (vector-ref c 0)
    [(0) (next k (fx+ x k))]
    [(1) (next k (fx- x k))]
    [(2) (next k (fx- k x))]
    [(3) (next k (if (fx< k x) k x))]
    [(4) (next k (if (fx> k x) k x))]
    [(5) (next k (fxlogand x k))]
    [(6) (next k (fxlogor x k))]
    [else x]))

(define (match8 n c)
  (do ([i 0 (fx+ i 1)] [x 0 (step x c)]) ((fx= i n) x)))

(define (f64-loop most re im)
  (let again ([i 0] [x 0.0] [y 0.0])
    (if (and (fl<= (fl+ (fl* x x) (fl* y y)) 4.0) (fx< i most))
        (let ([d (fl- (fl* x x) (fl* y y))] [xy (fl* x y)])
          (again (fx+ i 1) (fl+ d re) (fl+ (fl+ xy xy) im)))
        i)))

(define (require true) (unless true (error 'run_chez "wrong result")))

(define (print-rows)
  (define n 2000000)
  (define cells 1001)
  (define walks 1999)
  (define xs (map add1 (iota cells)))
  (define program (code cells))
  (define add3 (adder 3))
  (define (plus a b) (fx+ a b))
  (define rows
    (list
      (list "call" n (lambda () (require (= (calls n) 1))))
      (list "loop" n (lambda () (require (= (loop n) n))))
      (list "sum" n (lambda () (require (= (sum n) (/ (* n (- n 1)) 2)))))
      (list "fib" 635621 (lambda () (require (= (fib 27) 196418))))
      (list "list_fold" (* walks cells) (lambda () (require (= (list-fold walks plus xs) (* walks 501501)))))
      (list "closure" n (lambda () (require (= (closure n add3) (* 3 n)))))
      (list "match8" (* walks cells) (lambda () (require (= (match8 walks program) 18))))
      (list "f64_loop" n (lambda () (require (= (f64-loop n -0.5 0.25) n))))))
  (let-values ([(major minor patch) (scheme-version-number)])
    (printf "{\"version\": \"~a.~a.~a\", \"rows\": {" major minor patch))
  (let again ([rows rows])
    (let ([row (car rows)])
      (printf "\"~a\": ~,3f" (car row) (median (cadr row) (caddr row)))
      (unless (null? (cdr rows))
        (printf ", ")
        (again (cdr rows)))))
  (printf "}}\n"))

(if (null? (command-line-arguments))
    (print-rows)
    (printf "{\"depth\": ~a, \"end\": \"reached\"}\n" (down 1000000)))
