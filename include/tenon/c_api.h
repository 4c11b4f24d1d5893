/* Tenon's C interface: the one header that stays stable. C11 or C++.
 *
 * Every function that can fail returns 0 for success and -1 for an error, which then waits on the
 * calling thread until it is taken (tenon_last_error, tenon_error_take) or replaced by a later one.
 * Nothing is thrown. A `tenon_any*` named `out` must be initialised (to TENON_NONE_VALUE, or hold
 * something that is then released); on failure it is left alone. What is put into it is owned by
 * the caller, who releases it with tenon_any_release. Arguments are borrowed for the call.
 *
 * A struct that later versions may extend begins with its size, which the caller sets to the sizeof
 * that it was compiled with. Fields that a caller's version lacks have their defaults; a size that
 * the library doesn't know is a Usage error.
 *
 * Layouts are those of tvm-ffi 0.1: values and objects can be exchanged with it.
 */
#ifndef TENON_C_API_H_
#define TENON_C_API_H_

#include <stddef.h>
#include <stdint.h>

#include "tenon/dlpack.h"

#define TENON_C_API_VERSION 1

#if defined(_WIN32)
#define TENON_API
#else
#define TENON_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version that the library was built as; equal to TENON_C_API_VERSION when they fit. */
TENON_API int32_t tenon_c_api_version(void);
/* "0.1.0"; lives for ever. */
TENON_API const char* tenon_version(void);

/* ---- Values ---------------------------------------------------------------------------------- */

/* The types of values that cross this interface. */
enum {
  TENON_NONE = 0,
  TENON_INT = 1,
  TENON_BOOL = 2,
  TENON_FLOAT = 3,
  TENON_POINTER = 4,
  TENON_DTYPE = 5,
  TENON_DEVICE = 6,
  TENON_RAW_STRING = 8,    /* v.c_str, ends in a zero; as an argument only: it is copied */
  TENON_SMALL_STRING = 11, /* small_length bytes in v.bytes; use tenon_string_view */
  TENON_SMALL_BYTES = 12,
  TENON_OBJECT_BEGIN = 64, /* from here on: v.object, counted */
  TENON_STRING = 65,
  TENON_BYTES = 66,
  TENON_ERROR = 67,
  TENON_FUNCTION = 68,
  TENON_SHAPE = 69,
  TENON_TENSOR = 70,
  TENON_ARRAY = 0x100000,
  TENON_MAP = 0x100001,
  TENON_MODULE = 0x100003
  /* Other objects have other numbers from 0x100000 on: tenon_object_type_key names their types. */
};

/* The header of every object. Use tenon_object_retain and tenon_object_release. */
typedef struct tenon_object {
  uint64_t counts; /* strong in the low 32 bits, weak in the high ones */
  int32_t type_index;
  uint32_t reserved; /* the library's own */
  void (*deleter)(void* self, int flags);
} tenon_object;

/* A value: 16 bytes. What it doesn't use is zero. */
typedef struct tenon_any {
  int32_t type_index;
  uint32_t small_length;
  union {
    int64_t i; /* TENON_INT, TENON_BOOL */
    double f;
    void* pointer;
    const char* c_str;
    tenon_object* object;
    DLDataType dtype;
    DLDevice device;
    char bytes[8];
  } v;
} tenon_any;

#define TENON_NONE_VALUE \
  {                      \
    0, 0, {              \
      0                  \
    }                    \
  }

/* Bytes that somebody else owns. Text of ours ends in a zero beyond `size`. */
typedef struct tenon_text {
  const char* data;
  size_t size;
} tenon_text;

/* Null is allowed. */
TENON_API void tenon_object_retain(tenon_object* object);
TENON_API void tenon_object_release(tenon_object* object);
/* Releases what the value owns and makes it None. */
TENON_API void tenon_any_release(tenon_any* value);
/* Makes `out` another owner of the value. What comes from outside is checked, as arguments are. */
TENON_API int tenon_any_copy(const tenon_any* value, tenon_any* out);
/* The value as text for a person, as a string. */
TENON_API int tenon_any_repr(const tenon_any* value, tenon_any* out);

TENON_API int tenon_string_create(const char* data, size_t size, tenon_any* out);
TENON_API int tenon_bytes_create(const void* data, size_t size, tenon_any* out);
/* The bytes of a string or of bytes, borrowed from *value itself: they move with it when it is
 * short. {NULL, 0} for anything else. */
TENON_API tenon_text tenon_string_view(const tenon_any* value);

TENON_API int tenon_shape_create(const int64_t* dims, size_t rank, tenon_any* out);
/* The numbers of a shape, borrowed, and their count; NULL and 0 for anything else. */
TENON_API const int64_t* tenon_shape_view(const tenon_any* value, size_t* rank);

/* An array of copies of `items`. */
TENON_API int tenon_array_create(const tenon_any* items, size_t size, tenon_any* out);
/* -1, without an error, for anything else. */
TENON_API int64_t tenon_array_size(const tenon_any* value);
TENON_API int tenon_array_get(const tenon_any* value, size_t index, tenon_any* out);

/* A map of `size` keys to values, which are copied; it keeps their order. Of equal keys the last
 * counts. Keys are compared by content; a tensor may be one, an error or a function only as
 * itself. */
TENON_API int tenon_map_create(const tenon_any* keys, const tenon_any* values, size_t size,
                               tenon_any* out);
/* -1, without an error, for anything else. */
TENON_API int64_t tenon_map_size(const tenon_any* value);
/* The value of a key: 1, or 0 when there is none, and then `out` is left alone. -1 is an error. */
TENON_API int tenon_map_get(const tenon_any* map, const tenon_any* key, tenon_any* out);
/* The entry at a place from 0 to the size, in the map's order; either pointer may be NULL. */
TENON_API int tenon_map_entry(const tenon_any* map, size_t index, tenon_any* key, tenon_any* value);

/* ---- Objects and their fields ---------------------------------------------------------------- */

/* The name of a value's type, as a string: "int", "tensor", "graph.Module". */
TENON_API int tenon_type_key(const tenon_any* value, tenon_any* out);
/* The names of an object's fields, in order: an array of strings. It is empty for values without
 * fields, such as numbers, tensors and functions. */
TENON_API int tenon_object_fields(const tenon_any* object, tenon_any* out);
/* A field's value. An error that lists the fields when there is none of that name. Objects are
 * immutable; a value that isn't an object itself, such as a source span, is a copy. */
TENON_API int tenon_object_field(const tenon_any* object, const char* field, tenon_any* out);
/* Whether two values are equal in type and content: 1 or 0. -1 is an error. */
TENON_API int tenon_any_equal(const tenon_any* a, const tenon_any* b);

/* ---- Tensors --------------------------------------------------------------------------------- */

/* Takes over the managed tensor without copying its data; its deleter runs when the last use ends,
 * or at once on failure. The unversioned form can't say whether it may be written: `read_only`
 * does. */
TENON_API int tenon_tensor_from_dlpack(DLManagedTensor* tensor, int read_only, tenon_any* out);
TENON_API int tenon_tensor_from_dlpack_versioned(DLManagedTensorVersioned* tensor, tenon_any* out);
/* Shares the tensor's data; the receiver calls the managed tensor's deleter. The unversioned form
 * fails for a read-only tensor, which it couldn't say. */
TENON_API int tenon_tensor_to_dlpack(const tenon_any* tensor, DLManagedTensor** out);
TENON_API int tenon_tensor_to_dlpack_versioned(const tenon_any* tensor,
                                               DLManagedTensorVersioned** out);
/* A new compact tensor; its elements aren't initialised. */
TENON_API int tenon_tensor_create(const int64_t* shape, int32_t rank, DLDataType dtype,
                                  DLDevice device, tenon_any* out);
/* The tensor's description and data, borrowed; NULL for anything else. */
TENON_API const DLTensor* tenon_tensor_view(const tenon_any* tensor);

enum {
  TENON_TENSOR_READ_ONLY = 1, /* nobody may write into it here */
  TENON_TENSOR_CONSTANT = 2   /* its elements never change: what is made of them may be kept */
};
/* Which of these hold; 0 for anything else. */
TENON_API int32_t tenon_tensor_flags(const tenon_any* tensor);

/* ---- Functions ------------------------------------------------------------------------------- */

/* What is called: 0, or -1 after tenon_error_set. `args` are borrowed; `result` is None on entry
 * and what is put there is the caller's. One that fails and leaves no error gets one that says so;
 * an error that waited before the call is not taken for its own. */
typedef int (*tenon_packed_call)(void* context, const tenon_any* args, int32_t n,
                                 tenon_any* result);

/* A function that calls `call(context, ...)`; `release(context)`, which may be NULL, runs when the
 * last use ends. On failure `release` isn't called. */
TENON_API int tenon_function_create(tenon_packed_call call, void* context,
                                    void (*release)(void* context), tenon_any* out);
TENON_API int tenon_function_call(const tenon_any* function, const tenon_any* args, int32_t n,
                                  tenon_any* result);

/* How many threads a function that is called now may use: the limit of the machine that calls it,
 * or all that the process may use. */
TENON_API int32_t tenon_function_threads(void);

/* Lends threads to the loops of kernels, in place of the runtime's own. `run` calls
 * work(context, place) on the calling thread and on up to threads - 1 others at once, and returns
 * when all of them have returned; fewer is right too. `place` is best a small number of each
 * thread's own, the same in every loop: it chooses the part of a loop that the thread begins with,
 * and so what its processor's cache holds. `count` tells how many a loop may use by default. Both
 * are called by any thread, for ever; NULL for both gives the runtime's own threads back. Without
 * TENON_REPLACE an earlier choice stays, and that is no error: so a library that is loaded with a
 * program lends its threads only to a host that has chosen nothing. */
typedef void (*tenon_threads_run)(void (*work)(void* context, int32_t place), void* context,
                                  int32_t threads);
TENON_API int tenon_threads_lend(tenon_threads_run run, int32_t (*count)(void), int32_t flags);

enum {
  TENON_FOR_FILES = 1, /* files from untrusted senders may link it: it checks every argument */
  TENON_REPLACE = 4,   /* take the place of a function of that name */
  /* Called without arguments when a program that uses the function's library is loaded, and when
   * such a program ends (tenon_library_load). */
  TENON_AT_PROGRAM_START = 8,
  TENON_AT_PROGRAM_END = 16
};
/* Makes a function known by name to this process, executables included. */
TENON_API int tenon_function_register(const char* name, const tenon_any* function, int32_t flags);
/* An error that names the nearest one when there is none. */
TENON_API int tenon_function_find(const char* name, tenon_any* out);

/* ---- Modules and libraries ------------------------------------------------------------------- */

/* A module is a set of named functions from one source: a library, an executable, the host. It can
 * import others; a function that it lacks is then looked up in them, in their order, depth first.
 */

/* A module of the host's: `functions` is a map from names to functions. */
TENON_API int tenon_module_create(const char* name, const tenon_any* functions, tenon_any* out);
/* The names of the module's own functions: an array of strings. */
TENON_API int tenon_module_functions(const tenon_any* module, tenon_any* out);
/* The function of that name in the module or its imports; an error that lists what there is when
 * there is none. */
TENON_API int tenon_module_function(const tenon_any* module, const char* name, tenon_any* out);
/* An error when that would make a cycle. Not while other threads use the module. */
TENON_API int tenon_module_import(const tenon_any* module, const tenon_any* imported);

/* Loads the library of that name ("tenon_compiler"), once for the process: a shared object
 * libNAME.so beside the runtime's own or in one of the folders of `search`, a list of `folders`
 * strings (NULL and 0 for none). The library registers its functions, which tenon_function_find
 * then finds; `out`, which may be NULL, becomes the module that has them. It stays loaded.
 *
 * A library exports
 *
 *   int tenon_register_library(void);
 *
 * which calls tenon_function_register for each function and returns 0, or leaves an error waiting
 * and returns -1. Tenon's own libraries are refused unless they come from the runtime's build. A
 * program whose file names the library "x" loads "tenon_x", and looks its functions up there first.
 */
TENON_API int tenon_library_load(const char* name, const char* const* search, size_t folders,
                                 tenon_any* out);

/* ---- Errors ---------------------------------------------------------------------------------- */

enum {
  TENON_ERROR_USAGE = 0,
  TENON_ERROR_UNSUPPORTED = 1,
  TENON_ERROR_DAMAGED = 2,
  TENON_ERROR_RUNTIME = 3,
  TENON_ERROR_INTERNAL = 4
};

/* Takes the waiting error and returns its whole text, ending in a zero, which lives until the next
 * call of this function on this thread; NULL when none waits. */
TENON_API const char* tenon_last_error(void);
/* Takes the waiting error as a value; None when none waits. */
TENON_API void tenon_error_take(tenon_any* out);
/* Lets an error wait, for a function that is about to return -1. */
TENON_API void tenon_error_set(int32_t kind, const char* message);
/* Lets an error that was taken wait again; it stays the caller's too. */
TENON_API int tenon_error_restore(const tenon_any* error);
/* One of the kinds above; -1 for what is no error. */
TENON_API int32_t tenon_error_kind(const tenon_any* error);
/* The message alone, borrowed from the error. */
TENON_API tenon_text tenon_error_message(const tenon_any* error);
/* The whole text, as a string. */
TENON_API int tenon_error_text(const tenon_any* error, tenon_any* out);

/* ---- Executables ----------------------------------------------------------------------------- */

enum {
  /* The file's sender isn't trusted: only functions registered with TENON_FOR_FILES, no library, no
   * native code; else it is refused with the reason. */
  TENON_UNTRUSTED = 1
};

/* How a program is loaded; limits are -1 for none. */
typedef struct tenon_load_options {
  uint32_t size;       /* sizeof(tenon_load_options) */
  int32_t flags;       /* 0 or TENON_UNTRUSTED */
  int64_t deadline_ns; /* from the start of loading */
  int64_t memory;      /* bytes that loading allocates; a file that is mapped doesn't count */
  /* Modules in which the functions that the program calls are looked up first, in their order:
   * before the libraries that its file names, and before the functions that are registered. */
  const tenon_any* modules;
  size_t module_count;
} tenon_load_options;
#define TENON_LOAD_DEFAULTS \
  { sizeof(tenon_load_options), 0, -1, -1, NULL, 0 }

/* Maps a .tnx file, checks all of it, and links it: its functions must be registered before. The
 * program is immutable and may be shared by threads. The file may be replaced or removed
 * afterwards, but not be made shorter; one that is untrusted is copied, so that this matters to it
 * no more. */
TENON_API int tenon_program_load(const char* path, tenon_any* out);
/* NULL for the defaults. */
TENON_API int tenon_program_load_with(const char* path, const tenon_load_options* options,
                                      tenon_any* out);
/* The same for a file in memory, which is copied. */
TENON_API int tenon_program_from_bytes(const void* data, size_t size,
                                       const tenon_load_options* options, tenon_any* out);
/* The names of the functions that can be called: an array of strings. */
TENON_API int tenon_program_functions(const tenon_any* program, tenon_any* out);

/* A parameter or result of a function, borrowed from the program. */
typedef struct tenon_value_info {
  uint32_t size;    /* sizeof(tenon_value_info), set by the caller; the library fills in the rest */
  tenon_text name;  /* empty for a result without a name */
  tenon_text type;  /* "tensor[batch, 3; f32]", "i64", ...: all that the file says */
  int32_t kind;     /* TENON_TENSOR, TENON_SHAPE, TENON_INT, TENON_BOOL, TENON_FLOAT, TENON_ARRAY,
                     * TENON_FUNCTION, or TENON_NONE for anything else */
  DLDataType dtype; /* of a tensor or number */
  int32_t rank;     /* of a tensor or shape; -1 unknown */
  const int64_t* dims;       /* rank numbers, -1 where the file has a symbol; NULL when unknown */
  const tenon_text* symbols; /* rank texts: "batch", "3"; NULL when unknown */
} tenon_value_info;

/* How many parameters and results a function has; either pointer may be NULL. A function whose
 * result is a tuple has as many results as that has fields, and returns an array. */
TENON_API int tenon_program_signature(const tenon_any* program, const char* function,
                                      int32_t* params, int32_t* results);
TENON_API int tenon_program_param(const tenon_any* program, const char* function, int32_t index,
                                  tenon_value_info* out);
TENON_API int tenon_program_result(const tenon_any* program, const char* function, int32_t index,
                                   tenon_value_info* out);

/* Limits of each call; -1 for none. */
typedef struct tenon_limits {
  uint32_t size;       /* sizeof(tenon_limits); fields beyond it have no limit */
  int32_t threads;     /* of parallel loops; 0 for all that the process may use. oneDNN's are made
                          for each thread that calls: n callers take n times as many */
  int64_t fuel;        /* function entries and backward jumps */
  int64_t deadline_ns; /* from the call's start */
  int64_t memory;      /* bytes of stack, tensors, other values, and functions' workspace; what a
                          library in a shared object of its own works with doesn't count */
  int64_t depth;       /* frames; -1 for the default, 1048576 */
  int64_t stack_bytes; /* of registers; -1 for the default, 256 MiB */
} tenon_limits;
#define TENON_NO_LIMITS \
  { sizeof(tenon_limits), 0, -1, -1, -1, -1, -1 }

/* A function of the program as a value, which may be called by any thread, by several at once, and
 * be passed to programs. Each call is held to `limits`; NULL for none. A call within a machine's
 * call is held to what is left of that call's limits as well. */
TENON_API int tenon_program_function(const tenon_any* program, const char* name,
                                     const tenon_limits* limits, tenon_any* out);

/* All of the program's functions as a module, each such a value. */
TENON_API int tenon_program_module(const tenon_any* program, const tenon_limits* limits,
                                   tenon_any* out);

/* What a machine runs on: a stack, memory pools, and limits. One call at a time; make one for each
 * thread. It stays usable after every error. */
TENON_API int tenon_machine_create(const tenon_any* program, tenon_any* out);
/* Calls a function by name. Tensors are passed without copying where they are compact. The program
 * can read them but not write into them; a tensor that it returns as it came is read-only. Function
 * values that it returns carry the machine's limits: each call of one is held to them. */
TENON_API int tenon_machine_call(const tenon_any* machine, const char* function,
                                 const tenon_any* args, int32_t n, tenon_any* result);

/* Not while a call runs. Function values that earlier calls returned keep their limits. */
TENON_API int tenon_machine_set_limits(const tenon_any* machine, const tenon_limits* limits);
/* Stops the running call with an error; from any thread. So it does the calls that the host makes
 * of function values which this machine's calls returned, and calls of other machines that packed
 * functions make within one of these. Without any, nothing happens. */
TENON_API int tenon_machine_cancel(const tenon_any* machine);
/* The same for a function value of a program: stops its calls, and those of function values which
 * they returned, that the host makes outside of any machine's call. A Usage error for a function
 * that is no program's. */
TENON_API int tenon_function_cancel(const tenon_any* function);

#ifdef __cplusplus
}
#endif
#endif
