/* A PJRT plugin that computes nothing and misbehaves on demand, to test what stands around real ones.
 *
 * It needs only a C compiler: the few structs of the C ABI that it uses are declared here, apart from the client's own
 * transcription, so that the two check each other. By default every program copies: result i of @main is a copy of
 * argument i (of the last argument, if there are fewer) where the types agree, and zeros where not. @main's types are
 * read from the text.
 *
 * FAKE_PJRT_MODE chooses the misbehaviour, "name" or "name:argument":
 *   null_table, major_version, minor_version[:N], short_table[:BYTES]
 *                                                        the function table (the default cuts after PJRT_Compile)
 *   without:N                                            the table has null for its function number N
 *   initialize_error, client_error, compile_error, load_error, execute_error, event_error, download_error   all [:CODE]
 *   {initialize,compile,execute}_{abort,segv,hang}       the process ends, or the call never returns
 *   destroy_hang                                         destroying an executable never returns
 *   prints, rounds_up, sets_locale, ignores_signals, leaves_folder, forks, forks_and_ends
 *                                                        execution writes 8 MiB to each stream; rounds upwards from then on; has
 *                                                        another locale; ignores what would end the process; goes to /; leaves
 *                                                        a process behind that never ends; and ends itself
 *   no_code, upload_error[:CODE], destroy_error[:CODE]   execution fails, and the error's code cannot be asked for; copies to the
 *                                                        device end with an error; buffers are destroyed with an error
 *   null_deleter, null_types, null_dims                  null for what frees a serialised executable, or announces types
 *   offset[:N]                                           results are N (1) too large
 *   wrong_shape, wrong_dtype, fewer_outputs              results are not what was announced
 *   announce_shape, announce_dtype, announce_fewer       announcements are not what the program says
 *   row_major, no_host_layout                            a host_layout is ignored, or refused
 *   calls_itself:NAME                                    the name of the platform
 *   never_ready                                          execution and ready events never end
 *   leak[:MIB]                                           every execution leaks that much (1)
 * With FAKE_PJRT_DELAY set, executions, and the buffers that come from them, are ready so many milliseconds later.
 * With FAKE_PJRT_TRIGGER set, what concerns programs happens only to programs that contain that text; with FAKE_PJRT_ONCE
 * set, a process ends or hangs only while the file of that name exists, which it removes.
 */
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PRED = 1, S32 = 4, S64 = 5, U8 = 6, F32 = 11, F64 = 12, C64 = 14, C128 = 15, TOKEN = 23 };
enum { MAX_RANK = 8, MAX_OUTPUTS = 512, FUNCTIONS = 118 };

/* A function of the table: its result, its name, and the members of its arguments `a` after the usual two. */
#define CALL(result, name, ...)                                                              \
  typedef struct { size_t struct_size; void* extension_start; __VA_ARGS__; } name##_args; \
  static result name(name##_args* a)

typedef struct { int code; char text[200]; } Error;
typedef struct { bool never; int code; double due; } Event;
typedef struct { int type; size_t rank; int64_t dims[MAX_RANK]; } Type;
typedef struct { Type type; char* data; double due; } Buffer;
typedef struct { char* text; size_t count; Type types[MAX_OUTPUTS]; bool triggered; } Executable;
typedef struct { char version[400]; } Client;

static long live; /* native objects that exist */
long fake_live(void) { return live; }

static void* make(size_t size) {
  live++;
  return calloc(1, size);
}

static void unmake(void* object) {
  live--;
  free(object);
}

/* --- modes --- */

static const char* mode(const char* name) {
  const char* value = getenv("FAKE_PJRT_MODE");
  size_t n = strlen(name);
  if (!value || strncmp(value, name, n) || (value[n] && value[n] != ':')) return NULL;
  return value + n + (value[n] == ':');
}

static long number(const char* argument, long otherwise) { return *argument ? strtol(argument, NULL, 10) : otherwise; }

static Error* fail(int code, const char* text) {
  Error* error = make(sizeof *error);
  error->code = code;
  snprintf(error->text, sizeof error->text, "%s", text);
  return error;
}

static Error* asked_for(const char* name) {
  const char* argument = mode(name);
  return argument ? fail((int)number(argument, 13), "the fake plugin was asked to fail") : NULL;
}

static bool asked_to(const char* when, const char* what) {
  char name[40];
  snprintf(name, sizeof name, "%s_%s", when, what);
  const char* once = getenv("FAKE_PJRT_ONCE");
  if (!mode(name) || (once && unlink(once))) return false;
  fprintf(stderr, "some other line\nthe fake plugin was asked for %s\n", name);
  return true;
}

static void misbehave(const char* when) {
  if (asked_to(when, "abort")) abort();
  if (asked_to(when, "segv")) *(volatile int*)8 = 1;
  if (asked_to(when, "hang")) for (;;) pause();
}

/* What native code can do to the process that it runs in. */
static void meddle(void) {
  if (mode("prints"))
    for (int i = 0; i < 1 << 17; i++) {
      fputs("the fake plugin prints sixty-four characters a line and again.\n", stdout);
      fputs("the fake plugin prints sixty-four characters a line and again.\n", stderr);
    }
  if (mode("rounds_up")) fesetround(FE_UPWARD);
  if (mode("sets_locale")) setlocale(LC_ALL, "C.UTF-8");
  if (mode("ignores_signals"))
    for (int number = 1; number < 32; number++) signal(number, SIG_IGN);
  if (mode("leaves_folder") && chdir("/")) abort();
  if ((mode("forks") || mode("forks_and_ends")) && !fork()) for (;;) pause();
  if (mode("forks_and_ends")) *(volatile int*)8 = 1;
}

/* --- errors, plugin, events --- */

CALL(void, error_destroy, Error* error) { unmake(a->error); }

CALL(void, error_message, Error* error; const char* message; size_t size) {
  a->message = a->error->text;
  a->size = strlen(a->error->text);
}

CALL(Error*, error_get_code, Error* error; int code) {
  a->code = a->error->code;
  return mode("no_code") && a->error->code == 13 ? fail(12, "fake: no code") : NULL;
}

static Error* initialize(void* a) {
  (void)a;
  misbehave("initialize");
  return asked_for("initialize_error");
}

typedef struct {
  size_t struct_size; void* extension_start; const char* name; size_t name_size; int type;
  union { const char* s; int64_t i; const int64_t* list; float f; bool b; } value;
  size_t value_size;
} NamedValue;

CALL(Error*, attributes, const NamedValue* values; size_t count) {
  static const int64_t version[] = {1, 2, 3};
  static const NamedValue values[] = {
      {sizeof *values, NULL, "fake_name", 9, 0, {.s = "fake"}, 4},
      {sizeof *values, NULL, "platform", 8, 0, {.s = "elsewhere"}, 9},
      {sizeof *values, NULL, "xla_version", 11, 1, {.i = -7}, 1},
      {sizeof *values, NULL, "stablehlo_current_version", 25, 2, {.list = version}, 3},
      {sizeof *values, NULL, "fake_ratio", 10, 3, {.f = 0.5f}, 1},
      {sizeof *values, NULL, "is_fake", 7, 4, {.b = true}, 1},
  };
  a->values = values;
  a->count = sizeof values / sizeof *values;
  return NULL;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static double due(void) {
  const char* delay = getenv("FAKE_PJRT_DELAY");
  return delay ? now() + 1e-3 * strtod(delay, NULL) : 0;
}

static void wait_until(double when) {
  while (now() < when) usleep(200);
}

static Event* event(int code, bool may_hang, double due) {
  Event* made = make(sizeof *made);
  made->code = code;
  made->never = may_hang && mode("never_ready");
  made->due = due;
  return made;
}

static Error* ending(const Event* event) {
  return event->code ? fail(event->code, "the fake plugin was asked to fail later") : NULL;
}

CALL(Error*, event_destroy, Event* event) {
  unmake(a->event);
  return NULL;
}

CALL(Error*, event_is_ready, Event* event; bool ready) {
  a->ready = !a->event->never && now() >= a->event->due;
  return NULL;
}

CALL(Error*, event_error, Event* event) { return ending(a->event); }

CALL(Error*, event_await, Event* event) {
  while (a->event->never) pause();
  wait_until(a->event->due);
  return ending(a->event);
}

typedef struct { Event event; void (*callback)(Error*, void*); void* user; } Call;

static void* call_later(void* given) {
  Call* call = given;
  wait_until(call->event.due);
  call->callback(ending(&call->event), call->user);
  free(call);
  return NULL;
}

CALL(Error*, event_on_ready, Event* event; void (*callback)(Error*, void*); void* user) {
  if (a->event->never) return NULL;
  Call* call = malloc(sizeof *call);
  *call = (Call){*a->event, a->callback, a->user};
  pthread_t thread;
  if (!pthread_create(&thread, NULL, call_later, call)) pthread_detach(thread);
  return NULL;
}

/* --- client: one device with one memory; the client stands for all three --- */

CALL(Error*, client_create, const NamedValue* options; size_t count; void* kv[4]; Client* client) {
  Error* error = asked_for("client_error");
  if (error) return error;
  Client* client = make(sizeof *client);
  char* end = client->version + sprintf(client->version, "fake");
  for (size_t i = 0; i < a->count && i < 5; i++) {
    const NamedValue* o = &a->options[i];
    end += sprintf(end, " %.*s=", (int)o->name_size, o->name);
    if (o->type == 0) end += sprintf(end, "'%.*s'", (int)o->value_size, o->value.s);
    if (o->type == 1) end += sprintf(end, "%lld", (long long)o->value.i);
    if (o->type == 3) end += sprintf(end, "%g", o->value.f);
    if (o->type == 4) end += sprintf(end, "%s", o->value.b ? "true" : "false");
  }
  a->client = client;
  return NULL;
}

CALL(Error*, client_destroy, Client* client) {
  unmake(a->client);
  return NULL;
}

CALL(Error*, platform_name, Client* client; const char* name; size_t size) {
  const char* named = mode("calls_itself");
  a->name = named && *named ? named : "fake";
  a->size = strlen(a->name);
  return NULL;
}

CALL(Error*, platform_version, Client* client; const char* version; size_t size) {
  a->version = a->client->version;
  a->size = strlen(a->client->version);
  return NULL;
}

CALL(Error*, one_child, void* parent; void** children; size_t count) {
  static void* child;
  child = a->parent;
  a->children = &child;
  a->count = 1;
  return NULL;
}

CALL(Error*, description, void* device; void* description) {
  a->description = a->device;
  return NULL;
}

CALL(Error*, device_id, void* description; int id) {
  a->id = 0;
  return NULL;
}

/* --- buffers: dense, row-major --- */

static size_t width(int type) {
  switch (type) {
    case PRED: case U8: case TOKEN: return 1;
    case S32: case F32: return 4;
    case C128: return 16;
    default: return 8;
  }
}

static int64_t elements(const Type* type) {
  int64_t n = 1;
  for (size_t i = 0; i < type->rank; i++) n *= type->dims[i];
  return n;
}

static bool same(const Type* a, const Type* b) {
  return a->type == b->type && a->rank == b->rank && !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims);
}

static Buffer* buffer(const Type* type) {
  Buffer* made = make(sizeof *made);
  made->type = *type;
  made->data = calloc(elements(type) + 1, width(type->type));
  return made;
}

/* Copy between a dense row-major array and one of the given strides. */
static void strided(char* dense, char* other, const Type* type, const int64_t* strides, bool to_dense) {
  size_t size = width(type->type);
  for (int64_t i = 0, n = elements(type); i < n; i++) {
    int64_t offset = 0, rest = i;
    for (size_t d = type->rank; d-- > 0; rest /= type->dims[d]) offset += rest % type->dims[d] * strides[d];
    memcpy(to_dense ? dense + i * size : other + offset, to_dense ? other + offset : dense + i * size, size);
  }
}

CALL(Error*, from_host, Client* client; char* data; int type; const int64_t* dims; size_t rank;
                             const int64_t* strides; size_t num_strides; int semantics; void* device; void* memory;
                             void* layout; Event* done; Buffer* buffer) {
  if (a->rank > MAX_RANK || a->num_strides != a->rank) return fail(3, "fake: rank or strides");
  Type type = {a->type, a->rank, {0}};
  memcpy(type.dims, a->dims, a->rank * sizeof *a->dims);
  a->buffer = buffer(&type);
  strided(a->buffer->data, a->data, &type, a->strides, true);
  const char* code = mode("upload_error");
  a->done = event(code ? (int)number(code, 13) : 0, false, 0);
  return NULL;
}

CALL(Error*, to_host, Buffer* src;
                           struct { size_t size; void* ext; size_t tiled_size; void* tiled_ext; const int64_t* order;
                                    size_t rank; } *layout;
                           char* dst; size_t size; Event* event) {
  Error* error = asked_for("download_error");
  if (error) return error;
  const Type* type = &a->src->type;
  int64_t strides[MAX_RANK], stride = width(type->type);
  if (a->size < elements(type) * width(type->type)) return fail(3, "fake: dst is too small");
  if (a->layout && mode("no_host_layout")) return fail(12, "fake: no host_layout");
  for (size_t i = 0; i < type->rank; i++) {
    size_t axis = a->layout && !mode("row_major") ? (size_t)a->layout->order[i] : type->rank - 1 - i;
    strides[axis] = stride;
    stride *= type->dims[axis];
  }
  strided(a->src->data, a->dst, type, strides, false);
  a->event = event(0, false, a->src->due);
  return NULL;
}

CALL(Error*, buffer_destroy, Buffer* buffer) {
  free(a->buffer->data);
  unmake(a->buffer);
  return asked_for("destroy_error");
}

CALL(Error*, buffer_type, Buffer* buffer; int type) {
  a->type = a->buffer->type.type;
  return NULL;
}

CALL(Error*, buffer_dims, Buffer* buffer; const int64_t* dims; size_t rank) {
  a->dims = a->buffer->type.dims;
  a->rank = a->buffer->type.rank;
  return NULL;
}

CALL(Error*, buffer_ready, Buffer* buffer; Event* event) {
  a->event = event(0, true, a->buffer->due);
  return NULL;
}

/* --- programs --- */

/* Reads "tensor<2x3xf32>" at *p and moves *p behind it. */
static bool parse_type(const char** p, Type* type) {
  static const struct { const char* name; int type; } names[] = {
      {"i1>", PRED}, {"i32>", S32}, {"i64>", S64}, {"ui8>", U8}, {"token>", TOKEN}, {"f32>", F32}, {"f64>", F64},
      {"complex<f32>>", C64}, {"complex<f64>>", C128}};
  *p += strlen("tensor<");
  for (type->rank = 0; **p >= '0' && **p <= '9'; (*p)++) {
    if (type->rank == MAX_RANK) return false;
    type->dims[type->rank++] = strtoll(*p, (char**)p, 10);
  }
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strncmp(*p, names[i].name, strlen(names[i].name))) {
      type->type = names[i].type;
      *p += strlen(names[i].name);
      return true;
    }
  return false;
}

static bool parse(Executable* e) {
  const char* p = strstr(e->text, "@main(");
  if (!p) return false;
  int depth = 1;
  for (p += strlen("@main("); *p && depth; p++) depth += (*p == '(') - (*p == ')');
  while (*p == ' ') p++;
  if (strncmp(p, "->", 2)) return *p == '{' || !strncmp(p, "attributes", 10);
  for (p += 2; *p == ' '; p++) {}
  bool several = *p == '(';
  for (; *p && !(several && *p == ')'); p++) {
    if (strncmp(p, "tensor<", 7)) continue;
    if (e->count == MAX_OUTPUTS || !parse_type(&p, &e->types[e->count])) return false;
    e->count++;
    if (!several || *p == ')') break;
  }
  return true;
}

static void twist_shape(Type* type) {
  if (type->rank) type->dims[type->rank - 1]++;
  else type->dims[type->rank++] = 1;
}

static void twist_dtype(Type* type) {
  static const int other[16] = {[PRED] = U8, [S32] = F32, [F32] = S32, [S64] = F64, [F64] = S64, [C64] = F64, [C128] = C64};
  type->type = other[type->type];
}

static Error* load(const char* text, size_t size, Executable** out) {
  Executable* e = make(sizeof *e);
  e->text = calloc(1, size + 1);
  memcpy(e->text, text, size);
  const char* trigger = getenv("FAKE_PJRT_TRIGGER");
  e->triggered = !trigger || strstr(e->text, trigger);
  *out = e;
  if (e->triggered) misbehave("compile");
  Error* error = e->triggered ? asked_for("compile_error") : NULL;
  if (!error && !parse(e)) error = fail(3, "fake: no @main with types that the fake plugin knows");
  if (error) {
    free(e->text);
    unmake(e);
    *out = NULL;
  } else if (e->triggered && e->count) {
    if (mode("announce_shape")) twist_shape(&e->types[0]);
    if (mode("announce_dtype")) twist_dtype(&e->types[0]);
    if (mode("announce_fewer")) e->count--;
  }
  return error;
}

CALL(Error*, compile, Client* client; struct { size_t size; void* ext; const char* code; size_t code_size; } *program;
                           const char* options; size_t options_size; Executable* executable) {
  if (!a->options_size) abort(); /* as the real ones */
  return load(a->program->code, a->program->code_size, &a->executable);
}

CALL(Error*, deserialize, Client* client; const char* bytes; size_t size; Executable* executable) {
  Error* error = asked_for("load_error");
  return error ? error : load(a->bytes, a->size, &a->executable);
}

static void no_deleter(void* bytes) { (void)bytes; }

CALL(Error*, serialize, Executable* e; const char* bytes; size_t size; void* owner; void (*deleter)(void*)) {
  a->bytes = a->e->text;
  a->size = strlen(a->e->text);
  a->owner = NULL;
  a->deleter = mode("null_deleter") ? NULL : no_deleter;
  return NULL;
}

CALL(Error*, get_executable, Executable* loaded; Executable* executable) {
  a->executable = a->loaded;
  return NULL;
}

static Error* executable_destroy(void* a) {
  (void)a; /* only the loaded executable owns anything */
  return NULL;
}

CALL(Error*, loaded_destroy, Executable* executable) {
  if (a->executable->triggered) misbehave("destroy");
  free(a->executable->text);
  unmake(a->executable);
  return NULL;
}

CALL(Error*, executable_name, Executable* e; const char* name; size_t size) {
  a->name = "fake";
  a->size = 4;
  return NULL;
}

CALL(Error*, num_outputs, Executable* e; size_t count) {
  a->count = a->e->count;
  return NULL;
}

CALL(Error*, output_types, Executable* e; int* types; size_t count) {
  static int types[MAX_OUTPUTS];
  for (size_t i = 0; i < a->e->count; i++) types[i] = a->e->types[i].type;
  a->types = mode("null_types") ? NULL : types;
  a->count = a->e->count;
  return NULL;
}

CALL(Error*, output_dims, Executable* e; size_t count; const int64_t* dims; const size_t* ranks) {
  static int64_t dims[MAX_OUTPUTS * MAX_RANK];
  static size_t ranks[MAX_OUTPUTS];
  int64_t* end = dims;
  for (size_t i = 0; i < a->e->count; i++) {
    ranks[i] = a->e->types[i].rank;
    for (size_t d = 0; d < ranks[i]; d++) *end++ = a->e->types[i].dims[d];
  }
  a->count = a->e->count;
  a->dims = mode("null_dims") ? NULL : dims;
  a->ranks = ranks;
  return NULL;
}

static void add(Buffer* b, long offset) {
  int64_t n = elements(&b->type);
  for (int64_t i = 0; i < n; i++) switch (b->type.type) {
      case F32: ((float*)b->data)[i] += offset; break;
      case F64: ((double*)b->data)[i] += offset; break;
      case S32: ((int32_t*)b->data)[i] += offset; break;
      case S64: ((int64_t*)b->data)[i] += offset; break;
      case C64: ((float*)b->data)[2 * i] += offset; break;
      case C128: ((double*)b->data)[2 * i] += offset; break;
      default: b->data[i] ^= offset & 1;
    }
}

CALL(Error*, execute, Executable* e; void* options; Buffer*** inputs; size_t devices; size_t num_args;
                           Buffer*** outputs; Event** done; void* device) {
  const Executable* e = a->e;
  bool bad = e->triggered;
  Error* error = bad ? asked_for(mode("no_code") ? "no_code" : "execute_error") : NULL;
  if (error) return error;
  if (bad) misbehave("execute");
  if (bad) meddle();
  const char* argument = bad ? mode("leak") : NULL;
  if (argument) {
    size_t size = (size_t)number(argument, 1) << 20;
    memset(malloc(size), 1, size);
  }
  size_t count = e->count - (bad && mode("fewer_outputs") && e->count);
  double when = due();
  for (size_t i = 0; i < a->num_args; i++)
    if (a->inputs[0][i]->due > now()) when += a->inputs[0][i]->due - now();
  for (size_t i = 0; i < count; i++) {
    Type type = e->types[i];
    Buffer* from = a->num_args ? a->inputs[0][i < a->num_args ? i : a->num_args - 1] : NULL;
    if (bad && mode("wrong_shape")) twist_shape(&type);
    if (bad && mode("wrong_dtype")) twist_dtype(&type);
    Buffer* made = a->outputs[0][i] = buffer(&type);
    made->due = when;
    if (from && same(&from->type, &type)) memcpy(made->data, from->data, elements(&type) * width(type.type));
    if (bad && (argument = mode("offset"))) add(made, number(argument, 1));
  }
  if (a->done) {
    argument = bad ? mode("event_error") : NULL;
    a->done[0] = event(argument ? (int)number(argument, 13) : 0, bad, when);
  }
  return NULL;
}

/* --- the table: functions by their index in PJRT_Api --- */

typedef struct {
  size_t struct_size; void* extension_start;
  struct { size_t struct_size; void* extension_start; int major, minor; } version;
  void* functions[FUNCTIONS];
} Api;

const void* GetPjrtApi(void) {
  static struct { size_t struct_size; int type; void* next; } extension = {24, 10, NULL};
  static Api api = {
      sizeof api, &extension, {24, NULL, 0, 81},
      {[0] = error_destroy, [1] = error_message, [2] = error_get_code, [3] = initialize, [4] = attributes,
       [5] = event_destroy, [6] = event_is_ready, [7] = event_error, [8] = event_await, [9] = event_on_ready,
       [10] = client_create, [11] = client_destroy,
       [12] = platform_name, [14] = platform_version, [16] = one_child /* AddressableDevices */, [20] = compile,
       [22] = from_host, [23] = device_id, [26] = platform_name /* DeviceDescription_Kind */, [29] = description,
       [32] = one_child /* Device_AddressableMemories */, [36] = platform_name /* Memory_Kind */,
       [40] = executable_destroy, [41] = executable_name, [44] = num_outputs, [49] = serialize, [50] = loaded_destroy,
       [51] = get_executable, [55] = execute, [56] = deserialize, [58] = buffer_destroy, [59] = buffer_type,
       [60] = buffer_dims, [70] = to_host, [72] = buffer_ready, [90] = output_types, [91] = output_dims}};
  if (mode("null_table")) return NULL;
  if (mode("major_version")) api.version.major = 1;
  const char* minor = mode("minor_version");
  if (minor) api.version.minor = (int)number(minor, 56);
  const char* missing = mode("without");
  if (missing) api.functions[number(missing, 0)] = NULL;
  const char* bytes = mode("short_table");
  if (bytes) api.struct_size = (size_t)number(bytes, 40 + 8 * 90);
  return &api;
}
