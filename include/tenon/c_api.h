/* Tenon's C interface: the one header that stays stable. C11 or C++.
 *
 * A function that can fail returns 0 for success and -1 for an error. The error then waits on the
 * calling thread until it is taken (tenon_last_error, tenon_error_take) or replaced by a later
 * one. No function throws. A `tenon_any*` named `out` must be initialised: it is TENON_NONE_VALUE,
 * or holds a value, which is then released. On failure it is left unchanged. The caller owns what
 * is stored there and releases it with tenon_any_release. Arguments are borrowed for the call.
 *
 * A struct that later versions may extend begins with its size, which the caller sets to its own
 * sizeof. Fields missing from the caller's version take their defaults; a size that the library
 * doesn't know is a Usage error.
 *
 * The layouts are those of tvm-ffi 0.1, so values and objects can be exchanged with it. */
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

/* The TENON_C_API_VERSION that the library was built with. */
TENON_API int32_t tenon_c_api_version(void);
/* For example "0.1.0". Valid for the life of the process. */
TENON_API const char* tenon_version(void);

/* ---- Values ---------------------------------------------------------------------------------- */

/* The types of values that cross this interface (tenon_any.type_index). */
enum {
  TENON_NONE = 0,
  TENON_INT = 1,
  TENON_BOOL = 2,
  TENON_FLOAT = 3,
  TENON_POINTER = 4,
  TENON_DTYPE = 5,
  TENON_DEVICE = 6,
  TENON_RAW_STRING = 8,    /* v.c_str, NUL-terminated; only as an argument: it is copied */
  TENON_SMALL_STRING = 11, /* small_length bytes in v.bytes; use tenon_string_view */
  TENON_SMALL_BYTES = 12,
  TENON_OBJECT_BEGIN = 64, /* from here on: v.object, reference-counted */
  TENON_STRING = 65,
  TENON_BYTES = 66,
  TENON_ERROR = 67,
  TENON_FUNCTION = 68,
  TENON_SHAPE = 69,
  TENON_TENSOR = 70,
  TENON_ARRAY = 0x100000,
  TENON_MAP = 0x100001,
  TENON_MODULE = 0x100003,
  TENON_CELL = 0x100005
  /* Other objects have numbers above 0x100000; tenon_type_key names their types. */
};

/* The header of every object. Use tenon_object_retain and tenon_object_release. */
typedef struct tenon_object {
  uint64_t counts; /* strong in the low 32 bits, weak in the high ones */
  int32_t type_index;
  uint32_t reserved; /* for the library */
  void (*deleter)(void* self, int flags);
} tenon_object;

/* A value: 16 bytes. Unused bytes are zero. */
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

/* Borrowed bytes. Text from this library is NUL-terminated; `size` doesn't count the NUL. */
typedef struct tenon_text {
  const char* data;
  size_t size;
} tenon_text;

/* NULL is allowed. */
TENON_API void tenon_object_retain(tenon_object* object);
TENON_API void tenon_object_release(tenon_object* object);
/* Releases the value's contents and makes it None. */
TENON_API void tenon_any_release(tenon_any* value);
/* Stores another reference to the value in `out`. Foreign values are checked, as arguments are. */
TENON_API int tenon_any_copy(const tenon_any* value, tenon_any* out);
/* The value as human-readable text, a string. */
TENON_API int tenon_any_repr(const tenon_any* value, tenon_any* out);

TENON_API int tenon_string_create(const char* data, size_t size, tenon_any* out);
TENON_API int tenon_bytes_create(const void* data, size_t size, tenon_any* out);
/* The bytes of a string or bytes value; {NULL, 0} for any other type. A short string is stored in
 * *value itself, so the view is valid only while *value stays in place. */
TENON_API tenon_text tenon_string_view(const tenon_any* value);

TENON_API int tenon_shape_create(const int64_t* dims, size_t rank, tenon_any* out);
/* The dimensions of a shape, borrowed, and their count; NULL and 0 for any other type. */
TENON_API const int64_t* tenon_shape_view(const tenon_any* value, size_t* rank);

/* An array of copies of `items`. */
TENON_API int tenon_array_create(const tenon_any* items, size_t size, tenon_any* out);
/* -1, without an error, for any other type. */
TENON_API int64_t tenon_array_size(const tenon_any* value);
TENON_API int tenon_array_get(const tenon_any* value, size_t index, tenon_any* out);

/* A map with `size` entries, in the given order; keys and values are copied. If a key occurs twice,
 * its last value counts. Strings, bytes and numbers are compared by content as keys, other objects
 * by identity. */
TENON_API int tenon_map_create(const tenon_any* keys, const tenon_any* values, size_t size,
                               tenon_any* out);
/* -1, without an error, for any other type. */
TENON_API int64_t tenon_map_size(const tenon_any* value);
/* Looks a key up: 1 when found, 0 when absent (`out` is then left unchanged), -1 for an error. */
TENON_API int tenon_map_get(const tenon_any* map, const tenon_any* key, tenon_any* out);
/* The entry at `index`, below the size, in the map's order; `key` and `value` may be NULL. */
TENON_API int tenon_map_entry(const tenon_any* map, size_t index, tenon_any* key, tenon_any* value);

/* A cell is a value of a data type: the tag of its constructor, from 0, and copies of its fields.
 * The tag and the number of fields are what tenon_constructor_find gives. */
TENON_API int tenon_cell_create(int64_t tag, const tenon_any* fields, size_t size, tenon_any* out);
/* The fields of a cell, borrowed; `tag` and `size`, which may be NULL, receive its tag and their
 * count. NULL, -1 and 0 for any other type. */
TENON_API const tenon_any* tenon_cell_view(const tenon_any* value, int64_t* tag, size_t* size);

/* ---- Objects and their fields ---------------------------------------------------------------- */

/* The name of a value's type, as a string: "int", "tensor", "graph.Module". */
TENON_API int tenon_type_key(const tenon_any* value, tenon_any* out);
/* The names of an object's fields, in order: an array of strings. Empty for types without fields,
 * such as numbers, tensors and functions. */
TENON_API int tenon_object_fields(const tenon_any* object, tenon_any* out);
/* A field's value. An unknown name is an error that lists the fields. Objects are immutable; a
 * field that isn't itself a value, such as a source span, is copied. */
TENON_API int tenon_object_field(const tenon_any* object, const char* field, tenon_any* out);

/* Registers a type of the host: objects with these fields, which may hold any values. `type_index`
 * receives its number. A type that is registered already, with the same fields, keeps its number; a
 * key that another type has is an error, and so is one that begins with "graph.", "loop." or
 * "tenon.", a name of Tenon's types such as "int", or one with control bytes. At most 256 types,
 * which last until the process ends. */
TENON_API int tenon_type_register(const char* key, const char* const* fields, size_t field_count,
                                  int32_t* type_index);
/* An object of such a type: a value that programs hold and pass on, declared as opaque["KEY"], and
 * whose fields can be read as above. `data`, which may be NULL, is the host's; `release(data)`, if
 * not NULL, runs on any thread when the last reference ends, and isn't called on failure. */
TENON_API int tenon_object_create(int32_t type_index, const tenon_any* fields, size_t field_count,
                                  void* data, void (*release)(void* data), tenon_any* out);
/* The host's data; NULL for objects of other types. */
TENON_API void* tenon_object_data(const tenon_any* object);

/* Whether two values are equal in type and content: 1 or 0; -1 for an error. */
TENON_API int tenon_any_equal(const tenon_any* a, const tenon_any* b);

/* ---- Tensors --------------------------------------------------------------------------------- */

/* Takes ownership of the managed tensor without copying its data. Its deleter runs when the last
 * reference ends, or at once on failure. The unversioned struct can't say whether its data may be
 * written, so `read_only` does. */
TENON_API int tenon_tensor_from_dlpack(DLManagedTensor* tensor, int read_only, tenon_any* out);
TENON_API int tenon_tensor_from_dlpack_versioned(DLManagedTensorVersioned* tensor, tenon_any* out);
/* A tensor over memory that the host keeps. `view` describes it; its shape and strides are copied.
 * `release(context)`, if not NULL, runs when the last reference ends, on any thread, or at once on
 * failure. */
TENON_API int tenon_tensor_from_memory(const DLTensor* view, int read_only, void* context,
                                       void (*release)(void* context), tenon_any* out);
/* Shares the tensor's data; the receiver calls the managed tensor's deleter. The unversioned form
 * fails for a read-only tensor, because it can't express that. */
TENON_API int tenon_tensor_to_dlpack(const tenon_any* tensor, DLManagedTensor** out);
TENON_API int tenon_tensor_to_dlpack_versioned(const tenon_any* tensor,
                                               DLManagedTensorVersioned** out);
/* A new compact tensor with uninitialised elements. */
TENON_API int tenon_tensor_create(const int64_t* shape, int32_t rank, DLDataType dtype,
                                  DLDevice device, tenon_any* out);
/* The tensor's description and data, borrowed; NULL for any other type. */
TENON_API const DLTensor* tenon_tensor_view(const tenon_any* tensor);

enum {
  TENON_TENSOR_READ_ONLY = 1, /* must not be written through this reference */
  TENON_TENSOR_CONSTANT = 2   /* elements never change; derived results may be cached */
};
/* The flags that are set; 0 for any other type. */
TENON_API int32_t tenon_tensor_flags(const tenon_any* tensor);

/* A tensor of strings: `elements` has a text for each element of the shape, the last axis
 * innermost. They must be UTF-8 and are copied. Such a tensor is immutable and has no DLPack: its
 * dtype is {kDLOpaqueHandle, 64, 1}, and only tenon_string_tensor_element reads its elements. */
TENON_API int tenon_string_tensor_create(const tenon_text* elements, const int64_t* shape,
                                         int32_t rank, tenon_any* out);
/* The element at `index`, borrowed and without a NUL at its end; {NULL, 0} beyond the last one and
 * for any other type. */
TENON_API tenon_text tenon_string_tensor_element(const tenon_any* tensor, size_t index);

/* ---- Functions ------------------------------------------------------------------------------- */

/* The callee: returns 0, or -1 after tenon_error_set. `args` are borrowed. `result` is None on
 * entry; the caller owns what is stored there. If the callee returns -1 without setting an error,
 * the caller gets a generic one, never an error that waited before the call. */
typedef int (*tenon_packed_call)(void* context, const tenon_any* args, int32_t n,
                                 tenon_any* result);

/* A function that calls `call(context, ...)`. `release(context)`, if not NULL, runs when the last
 * reference ends; it isn't called on failure. */
TENON_API int tenon_function_create(tenon_packed_call call, void* context,
                                    void (*release)(void* context), tenon_any* out);
TENON_API int tenon_function_call(const tenon_any* function, const tenon_any* args, int32_t n,
                                  tenon_any* result);

/* The same, with the results of a program's function in tensors of the caller: `outputs` has one
 * for each result, or None for a result to allocate. An output must have the type and shape of its
 * result, be on the CPU, compact and writable, and overlap neither an argument nor another output.
 * `result` receives what tenon_function_call gives, with the outputs in place of the results. After
 * an error, the elements of the outputs are unspecified. */
TENON_API int tenon_function_call_into(const tenon_any* function, const tenon_any* args, int32_t n,
                                       const tenon_any* outputs, int32_t output_count,
                                       tenon_any* result);
/* A function of a program with its first n parameters bound to these arguments: calling it passes
 * the others. */
TENON_API int tenon_function_bind(const tenon_any* function, const tenon_any* args, int32_t n,
                                  tenon_any* out);

/* The number of threads that the function running now may use: the limit of the calling machine, or
 * all that are available to the process. */
TENON_API int32_t tenon_function_threads(void);

/* Makes the loops of kernels run on the host's threads instead of the runtime's own. `run` calls
 * work(context, place) on the calling thread and on up to threads - 1 others concurrently, and
 * returns when all of these calls have returned; fewer threads are allowed. `place` selects the
 * part of the loop that a thread starts with; for cache locality, each thread should pass its own
 * small number, the same in every loop. `count` returns the number of threads that a loop uses by
 * default. Both may be called from any thread until the process ends. NULL for both restores the
 * runtime's own threads. Without TENON_REPLACE, an earlier choice stays and the call still
 * succeeds; so a library that a program loads can't override the host's choice. */
typedef void (*tenon_threads_run)(void (*work)(void* context, int32_t place), void* context,
                                  int32_t threads);
TENON_API int tenon_threads_lend(tenon_threads_run run, int32_t (*count)(void), int32_t flags);

enum {
  TENON_FOR_FILES = 1, /* untrusted files may link it: it validates every argument */
  TENON_REPLACE = 4,   /* replace an existing function of that name */
  /* Called without arguments when a program that uses the function's library is loaded, or when
   * such a program ends (tenon_library_load). */
  TENON_AT_PROGRAM_START = 8,
  TENON_AT_PROGRAM_END = 16
};
/* Registers a function by name in this process, where executables find it too. */
TENON_API int tenon_function_register(const char* name, const tenon_any* function, int32_t flags);
/* An unknown name is an error that suggests the nearest one. */
TENON_API int tenon_function_find(const char* name, tenon_any* out);

/* ---- Modules and libraries ------------------------------------------------------------------- */

/* A module is a set of named functions from one source: a library, an executable or the host. It
 * can import other modules, which are searched in order and depth first for functions that it
 * lacks. */

/* A module of host functions: `functions` maps names to functions. */
TENON_API int tenon_module_create(const char* name, const tenon_any* functions, tenon_any* out);
/* The names of the module's own functions: an array of strings. */
TENON_API int tenon_module_functions(const tenon_any* module, tenon_any* out);
/* Finds a function in the module or its imports. An unknown name is an error that lists the
 * functions. */
TENON_API int tenon_module_function(const tenon_any* module, const char* name, tenon_any* out);
/* Fails if this would make a cycle. No other thread may use the module at the same time. */
TENON_API int tenon_module_import(const tenon_any* module, const tenon_any* imported);

/* Loads a library ("tenon_compiler") once per process, from libNAME.so beside the runtime's shared
 * object or in one of the `folders` strings of `search` (NULL and 0 for none). The library
 * registers its functions, so that tenon_function_find finds them. `out`, which may be NULL,
 * receives the module of these functions. The library is never unloaded.
 *
 * A library exports
 *
 *   int tenon_register_library(void);
 *
 * which calls tenon_function_register for each function and returns 0, or sets an error and
 * returns -1. Tenon's own libraries must come from the same build as the runtime. A program whose
 * file names the library "x" loads "tenon_x" and looks its functions up there first. */
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

/* Takes the waiting error and returns its full text, valid until the next call of this function on
 * this thread. NULL if no error waits. */
TENON_API const char* tenon_last_error(void);
/* Takes the waiting error as a value; None if there is none. */
TENON_API void tenon_error_take(tenon_any* out);
/* Sets the waiting error, for a function that is about to return -1. */
TENON_API void tenon_error_set(int32_t kind, const char* message);
/* Makes a taken error wait again; the caller keeps its reference. */
TENON_API int tenon_error_restore(const tenon_any* error);
/* One of the kinds above; -1 for any other type. */
TENON_API int32_t tenon_error_kind(const tenon_any* error);
/* The message alone, borrowed from the error. */
TENON_API tenon_text tenon_error_message(const tenon_any* error);
/* The full text, as a string. */
TENON_API int tenon_error_text(const tenon_any* error, tenon_any* out);
/* The parts of the text, as an array of arrays of strings, [label, text, note]: "span" for the
 * place in the program's source, the labels of the lines below the message ("where", "found",
 * "expected", ...), "at" for each of the machine's frames, innermost first, and "help". An error
 * that was reported with this one follows as "error", its message, and its parts. A missing note is
 * empty. Labels that begin with a dot are for programs, and their parts aren't in the text:
 * ".stopped_by" is "fuel", "deadline", "memory", "depth" or "stack", a limit that stopped the work,
 * or "cancel". A host can mark an error that it makes with a label of its own, and recognise it
 * when a call returns it. */
TENON_API int tenon_error_parts(const tenon_any* error, tenon_any* out);
/* An error with this message and these parts, which have the form of tenon_error_parts; NULL for
 * none. tenon_error_restore makes it wait, for a function that is about to return -1. */
TENON_API int tenon_error_create(int32_t kind, const char* message, const tenon_any* parts,
                                 tenon_any* out);

/* ---- Executables ----------------------------------------------------------------------------- */

enum {
  /* The file's sender isn't trusted. Its native code is ignored: the compiler's library compiles
   * the kernels from the computes in the file. A shared object is refused, and a file that has
   * libraries, kernels without computes, or functions not registered with TENON_FOR_FILES. */
  TENON_UNTRUSTED = 1
};

/* Options for loading a program. A limit of -1 means none. */
typedef struct tenon_load_options {
  uint32_t size;       /* sizeof(tenon_load_options) */
  int32_t flags;       /* 0 or TENON_UNTRUSTED */
  int64_t deadline_ns; /* from the start of loading */
  int64_t memory;      /* bytes that loading may allocate, excluding a mapped file */
  /* Modules searched first, in order, for the functions that the program calls: before the
   * libraries that its file names and before the registered functions. */
  const tenon_any* modules;
  size_t module_count;
  /* A map from names to tensors on the CPU: the weights that the file leaves out, and any others.
   * The program shares them, so their elements must not change while it lives; one that isn't
   * compact, or less aligned than the file says, is copied. NULL for none. */
  const tenon_any* weights;
  /* The program's name in errors; NULL for its path, or "<memory>" for bytes. */
  const char* name;
} tenon_load_options;
#define TENON_LOAD_DEFAULTS \
  { sizeof(tenon_load_options), 0, -1, -1, NULL, 0, NULL, NULL }

/* Maps a .tnx file, or a shared object that holds one (`tenon compile --shared`), verifies it, and
 * links it; the functions that it calls must be registered before. The program is immutable and may
 * be shared by threads. The file may be replaced or removed afterwards, but not truncated; an
 * untrusted file is copied, so that later changes don't matter. */
TENON_API int tenon_program_load(const char* path, tenon_any* out);
/* `options` may be NULL for the defaults. */
TENON_API int tenon_program_load_with(const char* path, const tenon_load_options* options,
                                      tenon_any* out);
/* Loads a file from memory, which is copied. */
TENON_API int tenon_program_from_bytes(const void* data, size_t size,
                                       const tenon_load_options* options, tenon_any* out);
/* The bytes of the file that the program was loaded from, borrowed from the program; {NULL, 0} for
 * any other value. */
TENON_API tenon_text tenon_program_file(const tenon_any* program);
/* The names of the exported functions: an array of strings. */
TENON_API int tenon_program_functions(const tenon_any* program, tenon_any* out);

/* The definitions of the data types in the signatures of these functions, an array of strings:
 * "tree[T] { Leaf, Node(tree[T], T, tree[T]) }". A constructor's place, from 0, is its tag. */
TENON_API int tenon_program_types(const tenon_any* program, tenon_any* out);
/* Looks a constructor up in such a definition: returns 1 and stores its tag and its number of
 * fields, or returns 0 if the definition has none of that name. Part of this header, not of the
 * library. */
static inline int tenon_constructor_find(tenon_text definition, const char* name, int64_t* tag,
                                         size_t* fields) {
  size_t i = 0, depth = 0, at = 0, count = 0;
  int64_t place = 0;
  int in_name = 0, same = 1;
  while (i < definition.size && definition.data[i] != '{') ++i;
  for (; i < definition.size; ++i) {
    const char c = definition.data[i];
    const int opens = c == '(' || c == '[' || c == '{', closes = c == ')' || c == ']' || c == '}';
    if (c == '"') { /* a name within a field's type */
      while (++i < definition.size && definition.data[i] != '"') i += definition.data[i] == '\\';
    } else if (opens) {
      if (depth == 1) count = 1, in_name = 0;
      if (++depth == 1) in_name = 1, at = 0, same = 1;
    } else if (depth == 1 && (closes || c == ',')) {
      if (same && at > 0 && name[at] == 0) {
        *tag = place;
        *fields = count;
        return 1;
      }
      ++place;
      in_name = 1, at = 0, same = 1, count = 0;
      if (closes) return 0;
    } else if (closes) {
      --depth;
    } else if (depth == 2 && c == ',') {
      ++count;
    } else if (depth == 1 && in_name && c != ' ') {
      same = same && c != 0 && name[at] == c;
      if (same) ++at;
    }
  }
  return 0;
}

/* A parameter or result of a function, borrowed from the program. */
typedef struct tenon_value_info {
  uint32_t size;    /* sizeof(tenon_value_info), set by the caller; the library fills in the rest */
  tenon_text name;  /* empty for an unnamed result */
  tenon_text type;  /* "tensor[batch, 3; f32]", "i64", ...: as the file states it */
  int32_t kind;     /* TENON_TENSOR, TENON_SHAPE, TENON_INT, TENON_BOOL, TENON_FLOAT, TENON_ARRAY,
                     * TENON_FUNCTION, or TENON_NONE for anything else */
  DLDataType dtype; /* of a tensor or number */
  int32_t rank;     /* of a tensor or shape; -1 if unknown */
  const int64_t* dims;       /* rank numbers, -1 for a symbolic dimension; NULL if unknown */
  const tenon_text* symbols; /* rank texts: "batch", "3"; NULL if unknown */
} tenon_value_info;

/* The numbers of parameters and results of a function; either pointer may be NULL. A function whose
 * result is a tuple returns an array, and has one result for each field of the tuple. */
TENON_API int tenon_program_signature(const tenon_any* program, const char* function,
                                      int32_t* params, int32_t* results);
TENON_API int tenon_program_param(const tenon_any* program, const char* function, int32_t index,
                                  tenon_value_info* out);
TENON_API int tenon_program_result(const tenon_any* program, const char* function, int32_t index,
                                   tenon_value_info* out);

#define TENON_MOST_THREADS 1024 /* of a parallel loop */

/* Limits of each call. -1 means no limit, unless stated otherwise. */
typedef struct tenon_limits {
  uint32_t size;       /* sizeof(tenon_limits); later fields are unlimited */
  int32_t threads;     /* of parallel loops; 0 for all available. oneDNN creates threads per calling
                          thread: n callers use n times as many */
  int64_t fuel;        /* function entries and backward jumps */
  int64_t deadline_ns; /* from the call's start */
  int64_t memory;      /* bytes of stack, tensors, other values and functions' workspace, excluding
                          what libraries in their own shared objects use internally */
  int64_t depth;       /* frames; -1 for the default, 1048576 */
  int64_t stack_bytes; /* of registers, at least 64 KiB; -1 for the default, 256 MiB */
} tenon_limits;
#define TENON_NO_LIMITS \
  { sizeof(tenon_limits), 0, -1, -1, -1, -1, -1 }

/* A function of the program as a value. Any number of threads may call it at once, and it can be
 * passed to programs. `limits` (NULL for none) apply to each call; a call made while a machine runs
 * on this thread also draws on what is left of that machine's limits. */
TENON_API int tenon_program_function(const tenon_any* program, const char* name,
                                     const tenon_limits* limits, tenon_any* out);

/* All exported functions as a module of such function values. */
TENON_API int tenon_program_module(const tenon_any* program, const tenon_limits* limits,
                                   tenon_any* out);

/* A machine runs a program's functions: it has a stack, memory pools and limits. It runs one call
 * at a time, so each thread needs its own. It stays usable after every error. */
TENON_API int tenon_machine_create(const tenon_any* program, tenon_any* out);

/* How a machine obtains the memory of tensors. */
enum {
  TENON_MEMORY_POOLED = 0, /* keeps freed blocks for later allocations */
  TENON_MEMORY_NAIVE = 1   /* takes each block from the system and returns it when it is freed */
};

typedef struct tenon_machine_options {
  uint32_t size;              /* sizeof(tenon_machine_options) */
  int32_t memory;             /* TENON_MEMORY_POOLED or TENON_MEMORY_NAIVE */
  const tenon_limits* limits; /* of each call; NULL for none */
  int32_t inter_op; /* threads for a group of calls (docs/isa.md, concurrent), at most those
                     * of the limits; each call runs on one. 0 or 1: in order, as in
                     * programs that aren't trusted, and under an instrument */
} tenon_machine_options;
#define TENON_MACHINE_DEFAULTS \
  { sizeof(tenon_machine_options), TENON_MEMORY_POOLED, NULL, 1 }

/* `options` may be NULL for the defaults. */
TENON_API int tenon_machine_create_with(const tenon_any* program,
                                        const tenon_machine_options* options, tenon_any* out);

/* Calls a function by name. Compact tensors are passed without copying. The program can read
 * argument tensors but not write to them; one that it returns unchanged is read-only. Function
 * values that it returns carry the machine's limits: each call of one is subject to them. */
TENON_API int tenon_machine_call(const tenon_any* machine, const char* function,
                                 const tenon_any* args, int32_t n, tenon_any* result);

/* The same, with the results in tensors of the caller: see tenon_function_call_into. */
TENON_API int tenon_machine_call_into(const tenon_any* machine, const char* function,
                                      const tenon_any* args, int32_t n, const tenon_any* outputs,
                                      int32_t output_count, tenon_any* result);
/* Calls a function value of any program on this machine, under the limits of both. A Usage error
 * for functions that aren't of a program. */
TENON_API int tenon_machine_call_function(const tenon_any* machine, const tenon_any* function,
                                          const tenon_any* args, int32_t n, tenon_any* result);

/* What a machine's memory pool has done, in blocks of tensor memory. A memory limit also counts the
 * stack and other values. */
typedef struct tenon_memory_stats {
  uint32_t size;              /* sizeof(tenon_memory_stats), set by the caller */
  int32_t memory;             /* TENON_MEMORY_POOLED or TENON_MEMORY_NAIVE */
  int64_t allocated;          /* bytes that the machine holds: in use, even by results, or pooled */
  int64_t peak;               /* the most bytes that were allocated at once */
  int64_t pooled;             /* bytes of freed blocks that are kept for later allocations */
  int64_t call_peak;          /* the most bytes in use at once in the last call, with headers */
  int64_t allocations;        /* blocks handed out */
  int64_t system_allocations; /* of these, blocks that were new from the system */
  int64_t call_bytes;         /* the most bytes that the last call's code asked for at once */
} tenon_memory_stats;

/* May be called from any thread. */
TENON_API int tenon_machine_memory(const tenon_any* machine, tenon_memory_stats* out);
/* Returns the pooled memory to the system. A Usage error if a call runs on another thread. */
TENON_API int tenon_machine_trim(const tenon_any* machine);

/* What a call instruction calls. */
enum {
  TENON_CALL_FUNCTION = 0, /* a function of the program */
  TENON_CALL_CLOSURE = 1,  /* a function value; its name is empty if no program made it */
  TENON_CALL_PACKED = 2,   /* a registered function, or one of a library or module */
  TENON_CALL_KERNEL = 3 /* compiled code, which writes to its last arguments; the result is None */
};

/* A call within a program, as an instrument sees it. Everything is borrowed. */
typedef struct tenon_call_event {
  uint32_t size;  /* of the library's version of this struct */
  int32_t kind;   /* TENON_CALL_FUNCTION, ... */
  int32_t before; /* 1 before the call, 0 after it */
  int32_t arg_count;
  tenon_text name;   /* of the called function */
  tenon_text caller; /* the name of the calling function */
  const tenon_any* function;
  const tenon_any* args;
  tenon_any* result; /* after the call, its result. Before it None: what the call returns if it is
                      * skipped. May be replaced by tenon_any_copy and the like, but a kernel's
                      * remains None: it writes to its last arguments, and so must an instrument
                      * that skips it. */
} tenon_call_event;

enum {
  TENON_INSTRUMENT_CONTINUE = 0,
  TENON_INSTRUMENT_SKIP = 1 /* before a call: don't call */
};
/* Returns one of the values above, or -1 after tenon_error_set, which stops the program's call. */
typedef int (*tenon_instrument)(void* context, const tenon_call_event* event);

/* Makes a machine call `instrument` before and after each call instruction of its own program, on
 * the thread that runs the machine; NULL for none. A tail call ends with the call that it replaces,
 * which has the only event after it; a skipped call and one that fails have none.
 * `release(context)`, if not NULL, runs when the instrument is replaced or the machine ends; it
 * isn't called on failure. No call may be running. */
TENON_API int tenon_machine_set_instrument(const tenon_any* machine, tenon_instrument instrument,
                                           void* context, void (*release)(void* context));

/* No call may be running. Function values returned by earlier calls keep their old limits. */
TENON_API int tenon_machine_set_limits(const tenon_any* machine, const tenon_limits* limits);
/* Stops the running call with an error; may be called from any thread. Also stops calls of function
 * values that this machine's calls made, wherever they run, and calls of other machines made by
 * packed functions within one of these. Has no effect if nothing is running. */
TENON_API int tenon_machine_cancel(const tenon_any* machine);
/* The same for a program's function value: stops its running calls, and those of function values
 * that its calls made. For one that a machine's call made, those of all function values that this
 * machine made, except where the machine itself calls them. A Usage error if the function doesn't
 * come from a program. */
TENON_API int tenon_function_cancel(const tenon_any* function);

/* Lets the host stop work for reasons of its own, such as a signal whose handler must run on a
 * certain thread. `check` returns 0 to go on, -1 to stop (after tenon_error_set; the call or
 * compilation then fails with that error), or 1 if a thread other than the calling one must be
 * asked. It is called on threads that load or compile a program, at least every 50 ms, and on those
 * that run or help with a call after tenon_host_check_request. One per process; NULL for none. */
TENON_API int tenon_host_check_set(int (*check)(void));
/* Has the running calls of a machine or of a program's function value call the check soon; may be
 * called from any thread. Has no effect for other functions and if nothing is running. */
TENON_API int tenon_host_check_request(const tenon_any* machine_or_function);

#ifdef __cplusplus
}
#endif
#endif
