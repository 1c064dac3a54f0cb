/* An example of a PJRT plugin: one device, the host, that evaluates a small subset of StableHLO's text.
 *
 *     cc -std=c11 -O2 -Wall -shared -fPIC -o example_plugin.so example_plugin.c -lm
 *     tenferro-ref conform ./example_plugin.so
 *
 * docs/how-to/write-a-plugin.md explains it. Five parts, from bottom to top: errors and events; buffers and transfers; programs
 * (parse, check, evaluate); the client and its executables; the table. What it has not got ends in UNIMPLEMENTED, what is wrong
 * in INVALID_ARGUMENT: no call of the C API ends the process.
 *
 * The structs are those of pjrt_c_api.h 0.81, declared beside the function that takes them, without its names.
 */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID_ARGUMENT = 3, RESOURCE_EXHAUSTED = 8, FAILED_PRECONDITION = 9, UNIMPLEMENTED = 12 };
enum { MAX_RANK = 8, MAX_VALUES = 256, MAX_OPERANDS = 3, FUNCTIONS = 118 };

/* --- 1. errors and events ------------------------------------------------------------------------------------------------ */

typedef struct { int code; char text[240]; } Error;

static Error* fail(int code, const char* format, ...) {
  Error* error = malloc(sizeof *error);
  va_list list;
  va_start(list, format);
  vsnprintf(error->text, sizeof error->text, format, list);
  va_end(list);
  error->code = code;
  return error;
}

/* A function of the table: the members of its arguments `a` after the usual two, and the last of them that it touches. An older
 * client sends a shorter struct; one that lacks what is touched is refused, a longer one is taken. */
#define CALL(name, last, ...)                                                                                     \
  typedef struct { size_t struct_size; void* extension_start; __VA_ARGS__; } name##_args;                         \
  static Error* name##_body(name##_args* a);                                                                      \
  static Error* name(name##_args* a) {                                                                            \
    size_t needed = offsetof(name##_args, last) + sizeof a->last;                                                 \
    if (a->struct_size < needed)                                                                                  \
      return fail(INVALID_ARGUMENT, #name ": struct_size is %zu, expected at least %zu", a->struct_size, needed); \
    return name##_body(a);                                                                                        \
  }                                                                                                               \
  static Error* name##_body(name##_args* a)

typedef struct { size_t struct_size; void* extension_start; Error* error; const char* message; size_t size; } message_args;

static void error_destroy(message_args* a) { free(a->error); }

static void error_message(message_args* a) {
  a->message = a->error->text;
  a->size = strlen(a->error->text);
}

CALL(error_code, code, Error* error; int code) {
  a->code = a->error->code;
  return NULL;
}

/* Everything happens before a call returns: an event is always ready, and never an error. */
typedef struct { char unused; } Event;

static Event* event(void) { return calloc(1, sizeof(Event)); }

CALL(event_destroy, event, Event* event) {
  free(a->event);
  return NULL;
}

CALL(event_is_ready, ready, Event* event; bool ready) {
  a->ready = true;
  return NULL;
}

CALL(event_await, event, Event* event) { return NULL; }

CALL(event_on_ready, user, Event* event; void (*callback)(Error*, void*); void* user) {
  a->callback(NULL, a->user);
  return NULL;
}

/* --- 2. buffers and transfers: dense, row-major -------------------------------------------------------------------------- */

enum { PRED = 1, S32 = 4, S64 = 5, F32 = 11, F64 = 12 };

typedef struct { int type; size_t rank; int64_t dims[MAX_RANK]; } Type;
typedef struct { int id; } Client;
typedef struct { Client* client; Type type; char* data; bool deleted; } Buffer;

/* Bytes of an element of each PJRT_Buffer_Type, 0 for those that are not kept. */
static size_t width(int type) {
  static const unsigned char bytes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 2, 8, 16, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1};
  return type > 0 && (size_t)type < sizeof bytes ? bytes[type] : 0;
}

static int64_t elements(const Type* type) {
  int64_t n = 1;
  for (size_t i = 0; i < type->rank; i++) n *= type->dims[i];
  return n;
}

static bool same_shape(const Type* a, const Type* b) {
  return a->rank == b->rank && !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims);
}

static bool same_type(const Type* a, const Type* b) { return a->type == b->type && same_shape(a, b); }

/* Memory of so many elements, NULL if there is not so much. */
static char* memory(const Type* type) {
  int64_t size = width(type->type);
  for (size_t i = 0; i < type->rank; i++)
    if (__builtin_mul_overflow(size, type->dims[i], &size)) return NULL;
  return calloc(1, size + 1);
}

static Buffer* buffer(Client* client, const Type* type, char* data) {
  Buffer* made = calloc(1, sizeof *made);
  *made = (Buffer){client, *type, data, false};
  return made;
}

/* Copy between a dense array and one of any strides, in bytes. */
static void copy(char* dense, char* other, const Type* type, const int64_t* strides, bool to_dense) {
  size_t size = width(type->type);
  for (int64_t i = 0, n = elements(type); i < n; i++) {
    int64_t offset = 0, rest = i;
    for (size_t d = type->rank; d-- > 0; rest /= type->dims[d]) offset += rest % type->dims[d] * strides[d];
    memcpy(to_dense ? dense + i * size : other + offset, to_dense ? other + offset : dense + i * size, size);
  }
}

/* Strides of a dense array whose axes vary in the order minor_to_major; the usual one if that is NULL. False if it is no order. */
static bool dense_strides(const Type* type, const int64_t* minor_to_major, int64_t* strides) {
  int64_t stride = width(type->type);
  unsigned seen = 0;
  for (size_t i = 0; i < type->rank; i++) {
    size_t axis = minor_to_major ? (size_t)minor_to_major[i] : type->rank - 1 - i;
    if (axis >= type->rank || seen >> axis & 1) return false;
    seen |= 1u << axis;
    strides[axis] = stride;
    stride *= type->dims[axis];
  }
  return true;
}

CALL(from_host, buffer, Client* client; char* data; int type; const int64_t* dims; size_t rank; const int64_t* strides;
     size_t num_strides; int semantics; void* device; void* memory; void* layout; Event* done; Buffer* buffer) {
  Type type = {a->type, a->rank, {0}};
  int64_t strides[MAX_RANK];
  if (!width(a->type)) return fail(INVALID_ARGUMENT, "element type %d", a->type);
  if (a->rank > MAX_RANK) return fail(UNIMPLEMENTED, "rank %zu, at most %d", a->rank, MAX_RANK);
  if (a->layout) return fail(UNIMPLEMENTED, "a device layout: buffers are row-major");
  for (size_t i = 0; i < a->rank; i++)
    if ((type.dims[i] = a->dims[i]) < 0) return fail(INVALID_ARGUMENT, "extent %lld", (long long)a->dims[i]);
  dense_strides(&type, NULL, strides);
  if (a->num_strides && a->num_strides != a->rank)
    return fail(INVALID_ARGUMENT, "%zu strides for rank %zu", a->num_strides, a->rank);
  char* data = memory(&type);
  if (!data) return fail(RESOURCE_EXHAUSTED, "no memory for %lld elements", (long long)elements(&type));
  copy(data, a->data, &type, a->num_strides ? a->strides : strides, true);
  a->buffer = buffer(a->client, &type, data);
  a->done = event(); /* the array has been read, whatever its semantics */
  return NULL;
}

typedef struct { size_t struct_size; void* ext; const int64_t* minor_to_major; size_t rank; void* tiles[2]; size_t num_tiles; } Tiled;
typedef struct { size_t struct_size; void* ext; Tiled tiled; int type; } Layout;

CALL(to_host, event, Buffer* src; Layout* layout; char* dst; size_t size; Event* event) {
  const Type* type = &a->src->type;
  size_t bytes = elements(type) * width(type->type);
  int64_t strides[MAX_RANK];
  if (a->src->deleted) return fail(INVALID_ARGUMENT, "the buffer is deleted");
  if (a->layout && (a->layout->type || a->layout->tiled.num_tiles || a->layout->tiled.rank != type->rank))
    return fail(UNIMPLEMENTED, "a host layout other than an order of axes");
  if (!dense_strides(type, a->layout ? a->layout->tiled.minor_to_major : NULL, strides))
    return fail(INVALID_ARGUMENT, "minor_to_major is no order of axes");
  if (!a->dst) {
    a->size = bytes;
    return NULL;
  }
  if (a->size < bytes) return fail(INVALID_ARGUMENT, "%zu bytes for %zu", a->size, bytes);
  copy(a->src->data, a->dst, type, strides, false);
  a->event = event();
  return NULL;
}

CALL(buffer_destroy, buffer, Buffer* buffer) {
  free(a->buffer->data);
  free(a->buffer);
  return NULL;
}

CALL(buffer_delete, buffer, Buffer* buffer) {
  a->buffer->deleted = true;
  return NULL;
}

CALL(buffer_is_deleted, deleted, Buffer* buffer; bool deleted) {
  a->deleted = a->buffer->deleted;
  return NULL;
}

CALL(buffer_type, type, Buffer* buffer; int type) {
  a->type = a->buffer->type.type;
  return NULL;
}

CALL(buffer_dims, rank, Buffer* buffer; const int64_t* dims; size_t rank) {
  a->dims = a->buffer->type.dims;
  a->rank = a->buffer->type.rank;
  return NULL;
}

CALL(buffer_ready, event, Buffer* buffer; Event* event) {
  a->event = event();
  return NULL;
}

/* --- 3. programs: a list of values, each a parameter or made of earlier ones ---------------------------------------------- */

typedef enum { ADD, SUBTRACT, MULTIPLY, DIVIDE, MAXIMUM, MINIMUM, NEGATE, ABS, COMPARE, SELECT, TRANSPOSE, RESHAPE, BROADCAST, CONSTANT } Op;
static const struct { const char* name; int operands; } OPS[] = {
    {"add", 2}, {"subtract", 2}, {"multiply", 2}, {"divide", 2}, {"maximum", 2}, {"minimum", 2}, {"negate", 1}, {"abs", 1},
    {"compare", 2}, {"select", 3}, {"transpose", 1}, {"reshape", 1}, {"broadcast_in_dim", 1}, {"constant", 0}};
enum { OP_COUNT = sizeof OPS / sizeof *OPS };

typedef struct {
  char name[32];
  Type type;
  Op op;
  int operands[MAX_OPERANDS]; /* by number of value */
  int direction;              /* of a comparison: EQ NE LT LE GT GE */
  int64_t dims[MAX_RANK];     /* of transpose and broadcast_in_dim */
  char* data;                 /* of a constant */
} Value;

typedef struct {
  char* text; /* as it came, for serialising */
  size_t size;
  char name[64];
  Value values[MAX_VALUES];
  int count, parameters, results[MAX_VALUES], result_count;
  bool deleted;
  Client* client;
} Program;

/* Reading: `at` moves forward; the first error stays. */
typedef struct { const char *start, *at; Program* program; Error* error; } Reader;

static bool wrong(Reader* r, int code, const char* what) {
  int line = 1;
  for (const char* p = r->start; p < r->at; p++) line += *p == '\n';
  if (!r->error) r->error = fail(code, "line %d: %s, at '%.20s'", line, what, r->at);
  return false;
}

static void blank(Reader* r) {
  while (isspace((unsigned char)*r->at)) r->at++;
}

static bool take(Reader* r, const char* word) {
  blank(r);
  size_t n = strlen(word);
  if (strncmp(r->at, word, n) || (isalpha((unsigned char)word[0]) && isalnum((unsigned char)word[n - 1]) && (isalnum((unsigned char)r->at[n]) || r->at[n] == '_')))
    return false;
  r->at += n;
  return true;
}

static bool expect(Reader* r, const char* word) {
  char text[48];
  snprintf(text, sizeof text, "expected '%s'", word);
  return take(r, word) || wrong(r, INVALID_ARGUMENT, text);
}

static bool read_name(Reader* r, char mark, char* name, size_t room) {
  blank(r);
  size_t n = 0;
  if (*r->at != mark) return wrong(r, INVALID_ARGUMENT, "expected a name");
  for (r->at++; isalnum((unsigned char)*r->at) || *r->at == '_'; r->at++)
    if (n + 1 < room) name[n++] = *r->at;
  name[n] = 0;
  return n > 0 || wrong(r, INVALID_ARGUMENT, "expected a name");
}

static bool read_type(Reader* r, Type* type) {
  static const struct { const char* name; int type; } names[] = {{"i1>", PRED}, {"i32>", S32}, {"i64>", S64}, {"f32>", F32}, {"f64>", F64}};
  *type = (Type){0};
  if (!expect(r, "tensor<")) return false;
  while (isdigit((unsigned char)*r->at)) {
    if (type->rank == MAX_RANK) return wrong(r, UNIMPLEMENTED, "a rank beyond 8");
    type->dims[type->rank++] = strtoll(r->at, (char**)&r->at, 10);
    if (*r->at++ != 'x') return wrong(r, INVALID_ARGUMENT, "expected 'x'");
  }
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strncmp(r->at, names[i].name, strlen(names[i].name))) {
      type->type = names[i].type;
      r->at += strlen(names[i].name);
      return true;
    }
  return wrong(r, UNIMPLEMENTED, "an element type beside i1, i32, i64, f32 and f64, or a dynamic extent");
}

/* Attributes of parameters and results are hints here, donation among them. */
static bool skip_braces(Reader* r) {
  if (!take(r, "{")) return true;
  for (int depth = 1; depth; r->at++) {
    if (!*r->at) return wrong(r, INVALID_ARGUMENT, "expected '}'");
    depth += (*r->at == '{') - (*r->at == '}');
  }
  return true;
}

static int read_operand(Reader* r) {
  char name[32];
  if (!read_name(r, '%', name, sizeof name)) return -1;
  for (int i = r->program->count; i-- > 0;)
    if (!strcmp(r->program->values[i].name, name)) return i;
  wrong(r, INVALID_ARGUMENT, "a value that nothing has made");
  return -1;
}

/* "[1, 0]" */
static bool read_dims(Reader* r, int64_t* dims, size_t count) {
  if (!expect(r, "[")) return false;
  for (size_t i = 0; i < count; i++) {
    if (i && !expect(r, ",")) return false;
    blank(r);
    if (!isdigit((unsigned char)*r->at)) return wrong(r, INVALID_ARGUMENT, "expected an axis");
    dims[i] = strtoll(r->at, (char**)&r->at, 10);
  }
  return expect(r, "]");
}

/* ": (T, T) -> T" or ": T" or ": T, T"; the last one is the result's. Operands must be of the types before it. */
static bool read_types(Reader* r, Value* v) {
  Type types[MAX_OPERANDS + 1];
  int count = 0, operands = OPS[v->op].operands;
  if (!expect(r, ":")) return false;
  bool function = take(r, "(");
  do {
    if (count > MAX_OPERANDS || !read_type(r, &types[count++])) return wrong(r, INVALID_ARGUMENT, "too many types");
  } while (take(r, ","));
  if (function && (!expect(r, ")") || !expect(r, "->") || !read_type(r, &v->type))) return false;
  if (!function) v->type = types[count - 1];
  for (int i = 0; i < operands; i++) {
    const Type* given = function ? &types[i] : count == 1 ? &types[0] : &types[i < count ? i : count - 1];
    if ((function && count != operands) || !same_type(given, &r->program->values[v->operands[i]].type))
      return wrong(r, INVALID_ARGUMENT, "operands of other types than the operation says");
  }
  return true;
}

static int hex(char c) { return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? tolower(c) - 'a' + 10 : -1; }

/* One element as text: a number, its bits in hexadecimal, true, false. */
static bool read_element(Reader* r, int type, char* out) {
  if (type == PRED) {
    *out = take(r, "true");
    return *out || expect(r, "false");
  }
  blank(r);
  char* end;
  bool bits = !strncmp(r->at, "0x", 2), real = type == F32 || type == F64;
  uint64_t whole = bits ? strtoull(r->at, &end, 16) : (uint64_t)strtoll(r->at, &end, 10);
  if (!bits && real) {
    double number = strtod(r->at, &end);
    float narrow = strtof(r->at, NULL);
    memcpy(&whole, type == F64 ? (void*)&number : (void*)&narrow, width(type));
  }
  if (end == r->at) return wrong(r, INVALID_ARGUMENT, "expected a number");
  memcpy(out, &whole, width(type));
  r->at = end;
  return true;
}

/* "dense<...> : T": one element for all, nested lists, the bytes of all, or nothing. The type comes last, so it is read first. */
static bool read_constant(Reader* r, Value* v) {
  if (!expect(r, "dense<")) return false;
  const char* body = r->at;
  for (bool quoted = false; *r->at && (quoted || *r->at != '>'); r->at++) quoted ^= *r->at == '"';
  if (!expect(r, ">") || !read_types(r, v)) return false;
  const char* behind = r->at;
  size_t size = width(v->type.type), given = 0;
  int64_t count = elements(&v->type);
  if (!(v->data = memory(&v->type))) return wrong(r, RESOURCE_EXHAUSTED, "no memory for a constant");
  r->at = body;
  if (take(r, "\"0x")) {
    for (int high, low; (high = hex(r->at[0])) >= 0 && (low = hex(r->at[1])) >= 0; r->at += 2, given++)
      if (given < count * size) v->data[given] = (char)(high << 4 | low);
    if (!expect(r, "\"") || given % size) return wrong(r, INVALID_ARGUMENT, "bytes that are no elements");
    given /= size;
  } else {
    while (!take(r, ">")) {
      while (take(r, "[") || take(r, "]") || take(r, ",")) {}
      if (take(r, ">")) break;
      char element[8] = {0};
      if (!read_element(r, v->type.type, element)) return false;
      if ((int64_t)given < count) memcpy(v->data + given * size, element, size);
      given++;
    }
  }
  if (given != 1 && (int64_t)given != count) return wrong(r, INVALID_ARGUMENT, "a constant of another number of elements");
  for (int64_t i = 1; given == 1 && i < count; i++) memcpy(v->data + i * size, v->data, size);
  r->at = behind;
  return true;
}

/* Whether the types of an operation fit: what StableHLO's verifier checks. */
static bool check(Reader* r, Value* v) {
  const Type *t = &v->type, *x = v->op == CONSTANT ? t : &r->program->values[v->operands[0]].type;
  bool ok = true;
  switch (v->op) {
    case COMPARE: ok = t->type == PRED && same_shape(t, x) && same_type(x, &r->program->values[v->operands[1]].type); break;
    case SELECT:
      ok = x->type == PRED && (!x->rank || same_shape(x, t)) && same_type(t, &r->program->values[v->operands[1]].type) &&
           same_type(t, &r->program->values[v->operands[2]].type);
      break;
    case RESHAPE: ok = x->type == t->type && elements(x) == elements(t); break;
    case TRANSPOSE:
    case BROADCAST: {
      unsigned seen = 0;
      ok = x->type == t->type && (v->op == BROADCAST || x->rank == t->rank);
      for (size_t i = 0; ok && i < x->rank; i++) {
        size_t axis = v->dims[i], into = v->op == BROADCAST ? axis : i, from = v->op == BROADCAST ? i : axis;
        ok = axis < t->rank && !(seen >> axis & 1) && (x->dims[from] == t->dims[into] || (v->op == BROADCAST && x->dims[from] == 1));
        seen |= 1u << axis;
      }
      break;
    }
    default:
      for (int i = 0; i < OPS[v->op].operands; i++) ok = ok && same_type(t, &r->program->values[v->operands[i]].type);
  }
  if (!ok) return wrong(r, INVALID_ARGUMENT, "types that do not fit the operation");
  bool number = t->type != PRED, real = t->type == F32 || t->type == F64;
  if ((v->op <= ABS && !number) || (v->op == DIVIDE && !real)) return wrong(r, UNIMPLEMENTED, "this operation on this element type");
  return true;
}

static bool read_operation(Reader* r) {
  static const char* const directions[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
  if (r->program->count == MAX_VALUES) return wrong(r, UNIMPLEMENTED, "more than 256 values");
  Value v = {0};
  if (!read_name(r, '%', v.name, sizeof v.name) || !expect(r, "=")) return false;
  if (!take(r, "stablehlo.")) return wrong(r, UNIMPLEMENTED, "an operation that is not StableHLO's, or in its general form");
  int op = 0;
  while (op < OP_COUNT && !take(r, OPS[op].name)) op++;
  if (op == OP_COUNT) return wrong(r, UNIMPLEMENTED, "an operation that this plugin has not got");
  v.op = (Op)op;
  if (v.op == CONSTANT) {
    if (!read_constant(r, &v)) return free(v.data), false;
  } else {
    if (v.op == COMPARE) {
      while (v.direction < 6 && !take(r, directions[v.direction])) v.direction++;
      if (v.direction == 6 || !expect(r, ",")) return wrong(r, INVALID_ARGUMENT, "expected a direction");
    }
    for (int i = 0; i < OPS[op].operands; i++)
      if ((i && !expect(r, ",")) || (v.operands[i] = read_operand(r)) < 0) return false;
    if (v.op == COMPARE && take(r, ",") && !(take(r, "FLOAT") || take(r, "SIGNED") || take(r, "UNSIGNED")))
      return wrong(r, UNIMPLEMENTED, "this kind of comparison");
    if (v.op == TRANSPOSE || v.op == BROADCAST)
      if (!expect(r, ",") || !expect(r, "dims") || !expect(r, "=") || !read_dims(r, v.dims, r->program->values[v.operands[0]].type.rank))
        return false;
    if (!read_types(r, &v)) return false;
  }
  r->program->values[r->program->count++] = v; /* its constant is the program's from here on */
  return check(r, &r->program->values[r->program->count - 1]);
}

static bool read_parameters(Reader* r) {
  Program* p = r->program;
  if (!expect(r, "(")) return false;
  while (!take(r, ")")) {
    if (p->count == MAX_VALUES) return wrong(r, UNIMPLEMENTED, "more than 256 values");
    Value* v = &p->values[p->count];
    if ((p->count && !expect(r, ",")) || !read_name(r, '%', v->name, sizeof v->name) || !expect(r, ":") ||
        !read_type(r, &v->type) || !skip_braces(r))
      return false;
    p->parameters = ++p->count;
  }
  return true;
}

static bool read_module(Reader* r) {
  Program* p = r->program;
  Type announced[MAX_VALUES];
  int count = 0;
  strcpy(p->name, "main");
  if (!strncmp(r->at, "ML\xEFR", 4)) return wrong(r, UNIMPLEMENTED, "bytecode: only text is understood");
  if (!expect(r, "module")) return false;
  blank(r);
  if (*r->at == '@' && !read_name(r, '@', p->name, sizeof p->name)) return false;
  if (take(r, "attributes") && !skip_braces(r)) return false;
  if (!expect(r, "{") || !expect(r, "func.func")) return false;
  if (take(r, "private")) return wrong(r, UNIMPLEMENTED, "functions beside main");
  take(r, "public");
  if (!expect(r, "@main") || !read_parameters(r)) return false;
  if (take(r, "->")) {
    bool several = take(r, "(");
    do {
      if (count == MAX_VALUES || !read_type(r, &announced[count++]) || (several && !skip_braces(r))) return wrong(r, INVALID_ARGUMENT, "results");
    } while (several && take(r, ","));
    if (several && !expect(r, ")")) return false;
  }
  if (!expect(r, "{")) return false;
  while (!take(r, "return"))
    if (!read_operation(r)) return false;
  for (; p->result_count < count; p->result_count++) {
    int value = p->result_count && !expect(r, ",") ? -1 : read_operand(r);
    if (value < 0) return false;
    if (!same_type(&p->values[value].type, &announced[p->result_count])) return wrong(r, INVALID_ARGUMENT, "a result of another type");
    p->results[p->result_count] = value;
  }
  if (count && !expect(r, ":")) return false;
  for (Type type; count; count--)
    if (!read_type(r, &type) || (count > 1 && !expect(r, ","))) return false;
  if (!expect(r, "}")) return false;
  return take(r, "}") || wrong(r, *r->at ? UNIMPLEMENTED : INVALID_ARGUMENT, "expected the end of the module");
}

static void program_free(Program* p) {
  for (int i = 0; i < p->count; i++) free(p->values[i].data);
  free(p->text);
  free(p);
}

static Error* program_read(const char* text, size_t size, Program** out) {
  Program* p = calloc(1, sizeof *p);
  p->text = calloc(1, size + 1);
  memcpy(p->text, text, p->size = size);
  Reader r = {p->text, p->text, p, NULL};
  if (!read_module(&r)) {
    program_free(p);
    p = NULL;
  }
  *out = p;
  return r.error;
}

/* Evaluating. Integers wrap: they are added as unsigned ones. */
#define FOR_EACH for (int64_t i = 0; i < n; i++)
#define ARITHMETIC(T, U, HIGHER)                                                      \
  {                                                                                   \
    const T *x = (const T*)in[0], *y = (const T*)in[1];                               \
    T* z = (T*)out;                                                                   \
    switch (v->op) {                                                                  \
      case ADD: FOR_EACH z[i] = (T)((U)x[i] + (U)y[i]); break;                        \
      case SUBTRACT: FOR_EACH z[i] = (T)((U)x[i] - (U)y[i]); break;                   \
      case MULTIPLY: FOR_EACH z[i] = (T)((U)x[i] * (U)y[i]); break;                   \
      case DIVIDE: FOR_EACH z[i] = y[i] == 0 && !HIGHER ? 0 : (T)(x[i] / y[i]); break; \
      case MAXIMUM: FOR_EACH z[i] = x[i] != x[i] || x[i] > y[i] ? x[i] : y[i] != y[i] || y[i] > x[i] ? y[i] : larger_zero(x[i], y[i], HIGHER); break; \
      case MINIMUM: FOR_EACH z[i] = x[i] != x[i] || x[i] < y[i] ? x[i] : y[i] != y[i] || y[i] < x[i] ? y[i] : -larger_zero(-x[i], -y[i], HIGHER); break; \
      case NEGATE: FOR_EACH z[i] = HIGHER ? -x[i] : (T)((U)0 - (U)x[i]); break;       \
      default: FOR_EACH z[i] = HIGHER ? (T)fabs((double)x[i]) : x[i] < 0 ? (T)((U)0 - (U)x[i]) : x[i]; \
    }                                                                                 \
  }
/* Of two equal numbers the larger: +0 of the two zeros. */
#define larger_zero(x, y, real) ((real) && (x) == 0 ? (x) + (y) : (x))
#define COMPARED(T)                                                                                        \
  {                                                                                                        \
    const T *x = (const T*)in[0], *y = (const T*)in[1];                                                    \
    FOR_EACH out[i] = v->direction == 0 ? x[i] == y[i] : v->direction == 1 ? x[i] != y[i]                  \
                    : v->direction == 2 ? x[i] < y[i] : v->direction == 3 ? x[i] <= y[i]                   \
                    : v->direction == 4 ? x[i] > y[i] : x[i] >= y[i];                                      \
  }

/* Move elements: axis `d` of the result runs over axis `of[d]` of the operand, or over none (-1). */
static void move(const Value* v, const Type* from, const char* x, char* out) {
  int64_t strides[MAX_RANK], step[MAX_RANK] = {0};
  dense_strides(from, NULL, strides);
  for (size_t i = 0; i < from->rank; i++) {
    size_t axis = v->op == BROADCAST ? (size_t)v->dims[i] : i, source = v->op == BROADCAST ? i : (size_t)v->dims[i];
    step[axis] = from->dims[source] == 1 && v->op == BROADCAST ? 0 : strides[source];
  }
  copy(out, (char*)x, &v->type, step, true);
}

static void evaluate(const Program* p, const Value* v, char** data) {
  const char* in[MAX_OPERANDS] = {0};
  for (int i = 0; i < OPS[v->op].operands; i++) in[i] = data[v->operands[i]];
  if (!in[1]) in[1] = in[0];
  char* out = data[v - p->values];
  const Type* from = &p->values[v->operands[0]].type;
  int64_t n = elements(&v->type);
  size_t size = width(v->type.type);
  switch (v->op) {
    case CONSTANT: memcpy(out, v->data, n * size); break;
    case RESHAPE: memcpy(out, in[0], n * size); break;
    case TRANSPOSE:
    case BROADCAST: move(v, from, in[0], out); break;
    case SELECT: FOR_EACH memcpy(out + i * size, (in[0][from->rank ? i : 0] ? in[1] : in[2]) + i * size, size); break;
    case COMPARE:
      switch (from->type) {
        case PRED: COMPARED(unsigned char) break;
        case S32: COMPARED(int32_t) break;
        case S64: COMPARED(int64_t) break;
        case F32: COMPARED(float) break;
        default: COMPARED(double)
      }
      break;
    default:
      switch (v->type.type) {
        case S32: ARITHMETIC(int32_t, uint32_t, 0) break;
        case S64: ARITHMETIC(int64_t, uint64_t, 0) break;
        case F32: ARITHMETIC(float, float, 1) break;
        default: ARITHMETIC(double, double, 1)
      }
  }
}

/* --- 4. the client: one device with one memory, it stands for all three -------------------------------------------------- */

static Error* initialize(void* a) {
  (void)a;
  return NULL;
}

typedef struct { size_t struct_size; void* ext; const char* name; size_t name_size; int type; const int64_t* list; size_t size; } NamedValue;

CALL(attributes, count, const NamedValue* values; size_t count) {
  static const int64_t oldest[] = {0, 9, 0}, newest[] = {1, 0, 0};
  static const NamedValue values[] = {
      {sizeof *values, NULL, "stablehlo_minimum_version", 25, 2, oldest, 3},
      {sizeof *values, NULL, "stablehlo_current_version", 25, 2, newest, 3}};
  a->values = values;
  a->count = 2;
  return NULL;
}

CALL(client_create, client, const void* options; size_t count; void* kv[4]; Client* client) {
  static int clients;
  if (a->count) return fail(INVALID_ARGUMENT, "%zu options: this plugin has none", a->count);
  a->client = malloc(sizeof *a->client);
  a->client->id = clients++;
  return NULL;
}

CALL(client_destroy, client, Client* client) {
  free(a->client);
  return NULL;
}

CALL(platform_name, size, void* of; const char* name; size_t size) {
  a->name = "example";
  a->size = 7;
  return NULL;
}

CALL(memory_kind, size, void* of; const char* kind; size_t size) {
  a->kind = "host";
  a->size = 4;
  return NULL;
}

CALL(one_child, count, void* parent; void** children; size_t count) {
  static _Thread_local void* child;
  child = a->parent;
  a->children = &child;
  a->count = 1;
  return NULL;
}

CALL(description, description, void* device; void* description) {
  a->description = a->device;
  return NULL;
}

CALL(device_id, id, void* description; int id) {
  a->id = 0;
  return NULL;
}

/* Compile options are a protobuf message, CompileOptionsProto. Of it only this matters: how many replicas and partitions there
 * are to be (field 3, in it 4 and 5), and flags by name (field 7), of which there are none. */
static bool varint(const unsigned char** p, const unsigned char* end, uint64_t* number) {
  *number = 0;
  for (int shift = 0; *p < end && shift < 64; shift += 7) {
    *number |= (uint64_t)(**p & 0x7f) << shift;
    if (!(*(*p)++ & 0x80)) return true;
  }
  return false;
}

static Error* read_options(const unsigned char* p, size_t size, bool inner) {
  uint64_t tag, number = 0;
  for (const unsigned char* end = p + size; p < end;) {
    if (!varint(&p, end, &tag)) return fail(INVALID_ARGUMENT, "compile options that are no protobuf message");
    bool ok = true;
    switch (tag & 7) {
      case 0: ok = varint(&p, end, &number); break;
      case 1: ok = end - p >= 8; p += 8; break;
      case 2: ok = varint(&p, end, &number) && number <= (uint64_t)(end - p); break;
      case 5: ok = end - p >= 4; p += 4; break;
      default: ok = false;
    }
    if (!ok) return fail(INVALID_ARGUMENT, "compile options that are no protobuf message");
    if (!inner && tag >> 3 == 7) return fail(INVALID_ARGUMENT, "an option by name: this plugin has none");
    if (inner && (tag >> 3 == 4 || tag >> 3 == 5) && number != 1)
      return fail(INVALID_ARGUMENT, "%llu replicas or partitions, expected 1", (unsigned long long)number);
    if ((tag & 7) == 2) {
      Error* error = !inner && tag >> 3 == 3 ? read_options(p, number, true) : NULL;
      if (error) return error;
      p += number;
    }
  }
  return NULL;
}

typedef struct { size_t struct_size; void* ext; const char* code; size_t code_size; const char* format; size_t format_size; } Source;

CALL(compile, program, Client* client; Source* source; const unsigned char* options; size_t options_size; Program* program) {
  if (a->source->format_size != 4 || memcmp(a->source->format, "mlir", 4))
    return fail(INVALID_ARGUMENT, "the format '%.*s', expected 'mlir'", (int)a->source->format_size, a->source->format);
  Error* error = read_options(a->options, a->options_size, false);
  if (!error) error = program_read(a->source->code, a->source->code_size, &a->program);
  if (!error) a->program->client = a->client;
  return error;
}

/* A serialised program is its text with a sum of it before it: what is damaged is refused. */
static uint64_t sum_of(const char* text, size_t size) {
  uint64_t sum = 14695981039346656037u;
  for (size_t i = 0; i < size; i++) sum = (sum ^ (unsigned char)text[i]) * 1099511628211u;
  return sum;
}

CALL(serialize, deleter, Program* program; const char* bytes; size_t size; void* owner; void (*deleter)(void*)) {
  uint64_t sum = sum_of(a->program->text, a->program->size);
  char* bytes = malloc(a->program->size + sizeof sum);
  memcpy(bytes, &sum, sizeof sum);
  memcpy(bytes + sizeof sum, a->program->text, a->program->size);
  a->bytes = a->owner = bytes;
  a->size = a->program->size + sizeof sum;
  a->deleter = free;
  return NULL;
}

CALL(deserialize, program, Client* client; const char* bytes; size_t size; Program* program) {
  uint64_t sum;
  if (a->size < sizeof sum) return fail(INVALID_ARGUMENT, "%zu bytes are no executable", a->size);
  memcpy(&sum, a->bytes, sizeof sum);
  if (sum != sum_of(a->bytes + sizeof sum, a->size - sizeof sum)) return fail(INVALID_ARGUMENT, "bytes that are no executable, or damaged");
  Error* error = program_read(a->bytes + sizeof sum, a->size - sizeof sum, &a->program);
  if (!error) a->program->client = a->client;
  return error;
}

CALL(get_executable, executable, Program* loaded; Program* executable) {
  a->executable = a->loaded; /* one object stands for both; the loaded one owns it */
  return NULL;
}

CALL(executable_destroy, executable, Program* executable) { return NULL; }

CALL(loaded_destroy, executable, Program* executable) {
  program_free(a->executable);
  return NULL;
}

CALL(loaded_delete, executable, Program* executable) {
  a->executable->deleted = true;
  return NULL;
}

CALL(executable_name, size, Program* program; const char* name; size_t size) {
  a->name = a->program->name;
  a->size = strlen(a->program->name);
  return NULL;
}

CALL(num_outputs, count, Program* program; size_t count) {
  a->count = a->program->result_count;
  return NULL;
}

CALL(output_types, count, Program* program; int* types; size_t count) {
  static _Thread_local int types[MAX_VALUES];
  a->types = types;
  a->count = a->program->result_count;
  for (size_t i = 0; i < a->count; i++) types[i] = a->program->values[a->program->results[i]].type.type;
  return NULL;
}

CALL(output_dims, ranks, Program* program; size_t count; const int64_t* dims; const size_t* ranks) {
  static _Thread_local int64_t dims[MAX_VALUES * MAX_RANK];
  static _Thread_local size_t ranks[MAX_VALUES];
  int64_t* end = dims;
  a->count = a->program->result_count;
  for (size_t i = 0; i < a->count; i++) {
    const Type* type = &a->program->values[a->program->results[i]].type;
    ranks[i] = type->rank;
    for (size_t d = 0; d < type->rank; d++) *end++ = type->dims[d];
  }
  a->dims = dims;
  a->ranks = ranks;
  return NULL;
}

static Error* check_arguments(const Program* p, Buffer** inputs, size_t count) {
  if (p->deleted) return fail(FAILED_PRECONDITION, "the executable is deleted");
  if (count != (size_t)p->parameters) return fail(INVALID_ARGUMENT, "%zu arguments, expected %d", count, p->parameters);
  for (size_t i = 0; i < count; i++) {
    if (inputs[i]->client != p->client) return fail(INVALID_ARGUMENT, "argument %zu is a buffer of another client", i);
    if (inputs[i]->deleted) return fail(INVALID_ARGUMENT, "argument %zu is deleted", i);
    if (!same_type(&inputs[i]->type, &p->values[i].type)) return fail(INVALID_ARGUMENT, "argument %zu is of another type", i);
  }
  return NULL;
}

CALL(execute, done, Program* program; void* options; Buffer*** inputs; size_t devices; size_t num_args; Buffer*** outputs; Event** done) {
  const Program* p = a->program;
  Error* error = check_arguments(p, a->num_args ? a->inputs[0] : NULL, a->num_args);
  if (error) return error;
  char* data[MAX_VALUES] = {0};
  for (int i = 0; i < p->count && !error; i++) {
    if (i < p->parameters) data[i] = a->inputs[0][i]->data;
    else if (!(data[i] = memory(&p->values[i].type))) error = fail(RESOURCE_EXHAUSTED, "no memory for %%%s", p->values[i].name);
    else evaluate(p, &p->values[i], data);
  }
  for (int i = 0; i < p->result_count && !error; i++) {
    const Type* type = &p->values[p->results[i]].type;
    char* result = memory(type);
    if (result) memcpy(result, data[p->results[i]], elements(type) * width(type->type));
    else error = fail(RESOURCE_EXHAUSTED, "no memory for result %d", i);
    if (result) a->outputs[0][i] = buffer(p->client, type, result);
    for (int made = 0; error && made < i; made++) {
      free(a->outputs[0][made]->data);
      free(a->outputs[0][made]);
    }
  }
  for (int i = p->parameters; i < p->count; i++) free(data[i]);
  if (!error && a->done) a->done[0] = event();
  return error;
}

/* --- 5. the table: functions by their place in PJRT_Api ------------------------------------------------------------------ */

const void* GetPjrtApi(void) {
  static const struct {
    size_t struct_size; void* extension_start;
    struct { size_t struct_size; void* extension_start; int major, minor; } version;
    void* functions[FUNCTIONS];
  } api = {
      sizeof api, NULL, {24, NULL, 0, 81},
      {[0] = error_destroy, [1] = error_message, [2] = error_code, [3] = initialize, [4] = attributes, [5] = event_destroy,
       [6] = event_is_ready, [7] = event_await /* Event_Error */, [8] = event_await, [9] = event_on_ready, [10] = client_create,
       [11] = client_destroy, [12] = platform_name, [14] = platform_name /* Client_PlatformVersion */,
       [15] = one_child /* Client_Devices */, [16] = one_child /* Client_AddressableDevices */, [20] = compile, [22] = from_host,
       [23] = device_id, [26] = platform_name /* DeviceDescription_Kind */, [29] = description,
       [32] = one_child /* Device_AddressableMemories */, [36] = memory_kind, [40] = executable_destroy, [41] = executable_name,
       [44] = num_outputs, [49] = serialize, [50] = loaded_destroy, [51] = get_executable, [53] = loaded_delete, [55] = execute,
       [56] = deserialize, [58] = buffer_destroy, [59] = buffer_type, [60] = buffer_dims, [67] = buffer_delete,
       [68] = buffer_is_deleted, [70] = to_host, [72] = buffer_ready, [90] = output_types, [91] = output_dims}};
  return &api;
}
