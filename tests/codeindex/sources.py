"""A small source file in each language, and the blocks that it has: type, first and last line, name, docstring."""

from __future__ import annotations

LANGUAGES: dict[str, tuple[str, list[tuple[str, int, int, str, str]]]] = {
    "javascript": (
        """\
#!/usr/bin/env node
import fs from "fs";
const a = 1, b = 2;
/** Adds.
 * Two numbers. */
export function add(x, y = 1) { return x + y }
const mul = (x) => x * 2;
class Stack extends Base {
  // Pushes.
  push(x) {
    this.a = x;
  }
}
module.exports = { add };
exports.f = function (q) { return q };
if (a) { add() }
for (const x of []) {}
add();
export { x } from "y";
class P { handler = async () => {}; n = 1 }
const api = {
  // Fetches.
  fetchUser(id) {},
  saveUser: async (u) => {},
  limit: 3,
};
export default { data() {}, methods: { "doThing": function () {} } };
""",
        [
            ("IMPORT", 2, 2, "", ""),
            ("ASSIGNMENT", 3, 3, "a, b", ""),
            ("FUNCTION", 6, 6, "add", "Adds.\nTwo numbers."),
            ("FUNCTION", 7, 7, "mul", ""),
            ("CLASS", 8, 13, "Stack", ""),
            ("METHOD", 10, 12, "Stack.push", "Pushes."),
            ("ASSIGNMENT", 14, 14, "module.exports", ""),
            ("FUNCTION", 15, 15, "exports.f", ""),
            ("CONDITIONAL", 16, 16, "", ""),
            ("CONDITIONAL", 17, 17, "", ""),
            ("OTHER", 18, 18, "", ""),
            ("IMPORT", 19, 19, "", ""),
            ("CLASS", 20, 20, "P", ""),
            ("METHOD", 20, 20, "P.handler", ""),
            ("ASSIGNMENT", 21, 26, "api", ""),
            ("METHOD", 23, 23, "api.fetchUser", "Fetches."),
            ("METHOD", 24, 24, "api.saveUser", ""),
            ("OTHER", 27, 27, "", ""),
            ("METHOD", 27, 27, "default.data", ""),
            ("METHOD", 27, 27, "default.methods.doThing", ""),
        ],
    ),
    "typescript": (
        """\
import { A } from "a";
export interface Shape { area(): number; name: string }
export type T = string | number;
enum E { A, B }
namespace N {
  export class C<Q> { private m(x: Q): Q { return x } }
}
export const g = async (x: number): Promise<void> => { };
abstract class Base { abstract go(): void }
class P { private handler = (): void => {}; n: number = 1 }
""",
        [
            ("IMPORT", 1, 1, "", ""),
            ("CLASS", 2, 2, "Shape", ""),
            ("METHOD", 2, 2, "Shape.area", ""),
            ("CLASS", 3, 3, "T", ""),
            ("CLASS", 4, 4, "E", ""),
            ("CLASS", 6, 6, "C", ""),
            ("METHOD", 6, 6, "C.m", ""),
            ("FUNCTION", 8, 8, "g", ""),
            ("CLASS", 9, 9, "Base", ""),
            ("METHOD", 9, 9, "Base.go", ""),
            ("CLASS", 10, 10, "P", ""),
            ("METHOD", 10, 10, "P.handler", ""),
        ],
    ),
    "java": (
        """\
package a.b;
import java.util.List;
/** A stack. */
@Deprecated
public class Stack<T> extends Base {
  private int x = 1;
  public Stack(int n) { }
  /** Pushes. */
  @Override
  public void push(T t) throws E { }
  static class Inner { void go() {} }
}
enum E { A, B; void g() {} }
""",
        [
            ("OTHER", 1, 1, "", ""),
            ("IMPORT", 2, 2, "", ""),
            ("CLASS", 4, 12, "Stack", "A stack."),
            ("METHOD", 7, 7, "Stack.Stack", ""),
            ("METHOD", 9, 10, "Stack.push", "Pushes."),
            ("CLASS", 11, 11, "Stack.Inner", ""),
            ("METHOD", 11, 11, "Stack.Inner.go", ""),
            ("CLASS", 13, 13, "E", ""),
            ("METHOD", 13, 13, "E.g", ""),
        ],
    ),
    "go": (
        """\
package main
import "fmt"
// Add adds.
func Add(a, b int) int { return a }
// Push pushes.
func (s *Stack) Push(x int) { }
type Stack struct { items []int }
var x, y = 1, 2
const (
	A = 1
	B = 2
)
func (s *List[K, V]) Put(x K) { }
type (
	// Reader reads.
	Reader interface {
		// Read one.
		Read(p []byte) (int, error)
		io.Closer
	}
	Size = int
)
var handle = func(x int) { }
""",
        [
            ("OTHER", 1, 1, "", ""),
            ("IMPORT", 2, 2, "", ""),
            ("FUNCTION", 4, 4, "Add", "Add adds."),
            ("METHOD", 6, 6, "Stack.Push", "Push pushes."),
            ("CLASS", 7, 7, "Stack", ""),
            ("ASSIGNMENT", 8, 8, "x, y", ""),
            ("ASSIGNMENT", 9, 12, "A, B", ""),
            ("METHOD", 13, 13, "List.Put", ""),
            ("CLASS", 16, 20, "Reader", "Reader reads."),
            ("METHOD", 18, 18, "Reader.Read", "Read one."),
            ("CLASS", 21, 21, "Size", ""),
            ("FUNCTION", 23, 23, "handle", ""),
        ],
    ),
    "rust": (
        """\
use std::fmt;
/// A stack.
#[derive(Debug)]
pub struct Stack<T> { items: Vec<T> }
impl<T> Stack<T> {
    /// Pushes.
    pub fn push(&mut self, x: T) -> usize { 1 }
}
trait Go { fn go(&self); }
pub fn add(a: i32) -> i32 { a }
const X: i32 = 1;
mod m { pub fn inner() {} }
extern "C" { fn cfun(x: i32); }
macro_rules! twice { ($a:expr) => { $a + $a }; }
impl<'a, T> Iterator for &'a mut Stack<T> { }
static HANDLE: fn(i32) -> i32 = |x| x;
""",
        [
            ("IMPORT", 1, 1, "", ""),
            ("CLASS", 3, 4, "Stack", "A stack."),
            ("CLASS", 5, 8, "Stack", ""),
            ("METHOD", 7, 7, "Stack.push", "Pushes."),
            ("CLASS", 9, 9, "Go", ""),
            ("METHOD", 9, 9, "Go.go", ""),
            ("FUNCTION", 10, 10, "add", ""),
            ("ASSIGNMENT", 11, 11, "X", ""),
            ("FUNCTION", 12, 12, "inner", ""),
            ("FUNCTION", 13, 13, "cfun", ""),
            ("FUNCTION", 14, 14, "twice", ""),
            ("CLASS", 15, 15, "Stack", ""),
            ("FUNCTION", 16, 16, "HANDLE", ""),
        ],
    ),
    "c": (
        """\
#include <stdio.h>
#define N 10
/* Adds. */
static int add(int a, int b)
{ return a + b; }
char *name(void);
int x = 1;
struct point { int x; };
typedef struct { int y; } pt;
#ifdef A
int guarded(void) { return 1; }
#endif
""",
        [
            ("IMPORT", 1, 1, "", ""),
            ("ASSIGNMENT", 2, 2, "N", ""),
            ("FUNCTION", 4, 5, "add", "Adds."),
            ("FUNCTION", 6, 6, "name", ""),
            ("ASSIGNMENT", 7, 7, "x", ""),
            ("CLASS", 8, 8, "point", ""),
            ("CLASS", 9, 9, "pt", ""),
            ("FUNCTION", 11, 11, "guarded", ""),
        ],
    ),
    "cpp": (
        """\
#include <vector>
using namespace std;
namespace a {
// A stack.
template <typename T> class Stack : public Base {
 public:
  Stack();
  void push(const T& x) { v.push_back(x); }
};
}
int a::Stack::size() const { return 1; }
extern "C" { void cfun(int); }
int& first(int& a) { return a; }
class Outer {
 public:
  struct Inner { void go() { } } inner;
  enum class Mode { A, B };
  class Later;
  int& ref();
  explicit operator bool() const { return true; }
};
Outer::operator int() { return 1; }
auto lambda = [](int a) { return a; };
class EXPORT Shape : public Base { void draw(); };
""",
        [
            ("IMPORT", 1, 1, "", ""),
            ("IMPORT", 2, 2, "", ""),
            ("CLASS", 5, 9, "Stack", "A stack."),
            ("METHOD", 7, 7, "Stack.Stack", ""),
            ("METHOD", 8, 8, "Stack.push", ""),
            ("METHOD", 11, 11, "a::Stack::size", ""),
            ("FUNCTION", 12, 12, "cfun", ""),
            ("FUNCTION", 13, 13, "first", ""),
            ("CLASS", 14, 21, "Outer", ""),
            ("CLASS", 16, 16, "Outer.Inner", ""),
            ("METHOD", 16, 16, "Outer.Inner.go", ""),
            ("CLASS", 17, 17, "Outer.Mode", ""),
            ("METHOD", 19, 19, "Outer.ref", ""),
            ("METHOD", 20, 20, "Outer.operator bool", ""),
            ("METHOD", 22, 22, "Outer::operator int", ""),
            ("FUNCTION", 23, 23, "lambda", ""),
            ("CLASS", 24, 24, "Shape", ""),
            ("METHOD", 24, 24, "Shape.draw", ""),
        ],
    ),
    "ruby": (
        """\
require "json"
# Some things.
module Outer
  class Stack < Base
    # Pushes.
    def push(x)
      x
    end
  end
end
def top(a, b = 1)
end
X = 1
if X
  puts 1
end
puts "hi"
class A
  class << self
    def made; end
  end
end
double = ->(x) { x }
triple = lambda do |x|
  x
end
""",
        [
            ("IMPORT", 1, 1, "", ""),
            ("CLASS", 3, 10, "Outer", "Some things."),
            ("CLASS", 4, 9, "Outer.Stack", ""),
            ("METHOD", 6, 8, "Outer.Stack.push", ""),
            ("FUNCTION", 11, 12, "top", ""),
            ("ASSIGNMENT", 13, 13, "X", ""),
            ("CONDITIONAL", 14, 16, "", ""),
            ("OTHER", 17, 17, "", ""),
            ("CLASS", 18, 22, "A", ""),
            ("METHOD", 20, 20, "A.made", ""),
            ("FUNCTION", 23, 23, "double", ""),
            ("FUNCTION", 24, 26, "triple", ""),
        ],
    ),
    "php": (
        """\
<?php
namespace A\\B;
use X\\Y;
require_once "a.php";
/** Adds. */
function add(int $a): int { return $a; }
class Stack extends Base { public function push($x) { } }
$x = 1;
if ($x) { echo 1; }
foreach ([] as $y) {}
$handle = function ($x) { return $x; };
if (!function_exists("late")) {
  // Late.
  function late() { }
} else { $z = 1; class Other { } }
""",
        [
            ("IMPORT", 3, 3, "", ""),
            ("IMPORT", 4, 4, "", ""),
            ("FUNCTION", 6, 6, "add", "Adds."),
            ("CLASS", 7, 7, "Stack", ""),
            ("METHOD", 7, 7, "Stack.push", ""),
            ("ASSIGNMENT", 8, 8, "$x", ""),
            ("CONDITIONAL", 9, 9, "", ""),
            ("CONDITIONAL", 10, 10, "", ""),
            ("FUNCTION", 11, 11, "$handle", ""),
            ("CONDITIONAL", 12, 15, "", ""),
            ("FUNCTION", 14, 14, "late", "Late."),
            ("CLASS", 15, 15, "Other", ""),
        ],
    ),
    "csharp": (
        """\
using System;
namespace A.B {
  /// <summary>A stack.</summary>
  [Serializable]
  public class Stack<T> : Base {
    int n = 1;
    public Stack(int n) { }
    public void Push(T x) => n++;
  }
  interface I { void F(); }
  enum E { A }
  class Money {
    public int Cents { get; set; }
    public int this[int i] => 1;
    public static implicit operator int(Money m) => 1;
    public static Money operator +(Money a, Money b) => a;
    ~Money() { }
  }
}
""",
        [
            ("IMPORT", 1, 1, "", ""),
            ("CLASS", 4, 9, "Stack", "<summary>A stack.</summary>"),
            ("METHOD", 7, 7, "Stack.Stack", ""),
            ("METHOD", 8, 8, "Stack.Push", ""),
            ("CLASS", 10, 10, "I", ""),
            ("METHOD", 10, 10, "I.F", ""),
            ("CLASS", 11, 11, "E", ""),
            ("CLASS", 12, 18, "Money", ""),
            ("METHOD", 13, 13, "Money.Cents", ""),
            ("METHOD", 14, 14, "Money.this", ""),
            ("METHOD", 15, 15, "Money.operator int", ""),
            ("METHOD", 16, 16, "Money.operator +", ""),
            ("METHOD", 17, 17, "Money.~Money", ""),
        ],
    ),
}
