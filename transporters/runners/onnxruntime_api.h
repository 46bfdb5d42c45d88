// The few entries of ONNX Runtime's C interface that we call, declared here because its wheel holds the library without
// its header. OrtApi is a struct of function pointers to which every release only appends; the numbers below are the
// places of version 1 of that struct, in include/onnxruntime/core/session/onnxruntime_c_api.h of microsoft/onnxruntime.
#pragma once

#include <cstddef>
#include <cstdint>

namespace transporters::ort {

// Opaque objects of the library.
struct Status;
struct Env;
struct SessionOptions;
struct Session;
struct RunOptions;
struct MemoryInfo;
struct Value;
struct Allocator;
struct TensorTypeAndShapeInfo;

struct Api;  // an array of function pointers

struct ApiBase {
  const Api* (*get_api)(uint32_t version);
  const char* (*get_version_string)();
};
using GetApiBase = const ApiBase* (*)();

constexpr uint32_t kApiVersion = 1;
constexpr int kLogFatal = 4;         // ORT_LOGGING_LEVEL_FATAL: errors are thrown, and need no line besides
constexpr int kDeviceAllocator = 0;  // OrtDeviceAllocator
constexpr int kDefaultMemory = 0;    // OrtMemTypeDefault
constexpr int kDisableAllOptimization = 0;

// The function at place `Index`, with the signature of the entry of that name.
template <size_t Index, typename Signature>
struct Entry {
  Signature* operator()(const Api* api) const {
    return reinterpret_cast<Signature* const*>(reinterpret_cast<const void*>(api))[Index];
  }
};

constexpr Entry<2, const char*(const Status*)> GetErrorMessage;
constexpr Entry<3, Status*(int level, const char* id, Env**)> CreateEnv;
constexpr Entry<7, Status*(const Env*, const char* path, const SessionOptions*, Session**)> CreateSession;
constexpr Entry<9, Status*(Session*, const RunOptions*, const char* const* input_names, const Value* const* inputs,
                           size_t input_count, const char* const* output_names, size_t output_count, Value** outputs)>
    Run;
constexpr Entry<10, Status*(SessionOptions**)> CreateSessionOptions;
constexpr Entry<23, Status*(SessionOptions*, int level)> SetSessionGraphOptimizationLevel;
constexpr Entry<24, Status*(SessionOptions*, int threads)> SetIntraOpNumThreads;
constexpr Entry<30, Status*(const Session*, size_t*)> SessionGetInputCount;
constexpr Entry<31, Status*(const Session*, size_t*)> SessionGetOutputCount;
constexpr Entry<32, Status*(const Session*, size_t*)> SessionGetOverridableInitializerCount;
constexpr Entry<36, Status*(const Session*, size_t index, Allocator*, char**)> SessionGetInputName;
constexpr Entry<37, Status*(const Session*, size_t index, Allocator*, char**)> SessionGetOutputName;
constexpr Entry<38, Status*(const Session*, size_t index, Allocator*, char**)> SessionGetOverridableInitializerName;
constexpr Entry<49, Status*(const MemoryInfo*, void* data, size_t bytes, const int64_t* sizes, size_t rank, int type,
                            Value**)>
    CreateTensorWithDataAsOrtValue;
constexpr Entry<51, Status*(Value*, void**)> GetTensorMutableData;
constexpr Entry<60, Status*(const TensorTypeAndShapeInfo*, int*)> GetTensorElementType;
constexpr Entry<61, Status*(const TensorTypeAndShapeInfo*, size_t*)> GetDimensionsCount;
constexpr Entry<62, Status*(const TensorTypeAndShapeInfo*, int64_t*, size_t)> GetDimensions;
constexpr Entry<65, Status*(const Value*, TensorTypeAndShapeInfo**)> GetTensorTypeAndShape;
constexpr Entry<69, Status*(int allocator, int memory, MemoryInfo**)> CreateCpuMemoryInfo;
constexpr Entry<76, Status*(Allocator*, void*)> AllocatorFree;
constexpr Entry<78, Status*(Allocator**)> GetAllocatorWithDefaultOptions;
constexpr Entry<92, void(Env*)> ReleaseEnv;
constexpr Entry<93, void(Status*)> ReleaseStatus;
constexpr Entry<94, void(MemoryInfo*)> ReleaseMemoryInfo;
constexpr Entry<95, void(Session*)> ReleaseSession;
constexpr Entry<96, void(Value*)> ReleaseValue;
constexpr Entry<99, void(TensorTypeAndShapeInfo*)> ReleaseTensorTypeAndShapeInfo;
constexpr Entry<100, void(SessionOptions*)> ReleaseSessionOptions;

}  // namespace transporters::ort
