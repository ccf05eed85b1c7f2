/*
 * An addon of Node: a function that returns how many bytes of glibc's malloc are in use, in all arenas. Built by soak.ts,
 * which has the processes that it measures load it. The declarations are those of node_api.h, which Node brings no copy of.
 */
#include <malloc.h>
#include <stddef.h>

typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
typedef struct napi_callback_info__ *napi_callback_info;
typedef napi_value (*napi_callback)(napi_env, napi_callback_info);
int napi_create_double(napi_env, double, napi_value *);
int napi_create_function(napi_env, const char *, size_t, napi_callback, void *, napi_value *);

static napi_value in_use(napi_env env, napi_callback_info info) {
  struct mallinfo2 all = mallinfo2();
  napi_value bytes = NULL;
  napi_create_double(env, (double)(all.uordblks + all.hblkhd), &bytes);
  return bytes;
}

napi_value napi_register_module_v1(napi_env env, napi_value exports) {
  napi_value function = NULL;
  napi_create_function(env, "inUse", sizeof "inUse" - 1, in_use, NULL, &function);
  return function;
}
