func.func @gather_clamps() {
  %x = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>
  %i = stablehlo.constant dense<[[2], [-4], [7]]> : tensor<3x1xi64>
  %rows = "stablehlo.gather"(%x, %i) {
    dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 2>} : (tensor<3x2xi32>, tensor<3x1xi64>) -> tensor<3x2xi32>
  check.expect_eq_const %rows, dense<[[5, 6], [1, 2], [5, 6]]> : tensor<3x2xi32>
  func.return
}

// -----

func.func @gather_along_a_batch() {
  %x = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %i = stablehlo.constant dense<[[2, 0], [1, 1]]> : tensor<2x2xi32>
  %picked = "stablehlo.gather"(%x, %i) {
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>,
    slice_sizes = array<i64: 1, 1>} : (tensor<2x3xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
  check.expect_eq_const %picked, dense<[[3, 1], [5, 5]]> : tensor<2x2xi32>
  func.return
}

// -----

func.func @scatter_skips() {
  %x = stablehlo.constant dense<0.0> : tensor<4xf64>
  %i = stablehlo.constant dense<[[-1], [2], [4], [2]]> : tensor<4x1xi32>
  %u = stablehlo.constant dense<[5.0, 6.0, 7.0, 0.5]> : tensor<4xf64>
  %y = "stablehlo.scatter"(%x, %i, %u) ({
    ^bb0(%a: tensor<f64>, %b: tensor<f64>):
      %0 = stablehlo.add %a, %b : tensor<f64>
      stablehlo.return %0 : tensor<f64>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<4xf64>, tensor<4x1xi32>, tensor<4xf64>) -> tensor<4xf64>
  check.expect_eq_const %y, dense<[0.0, 0.0, 6.5, 0.0]> : tensor<4xf64>
  func.return
}

// -----

func.func @scatter_of_unique_indices() {
  %x = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi64>
  %i = stablehlo.constant dense<[[2], [0]]> : tensor<2x1xi64>
  %u = stablehlo.constant dense<[[7, 8], [9, 10]]> : tensor<2x2xi64>
  %set = "stablehlo.scatter"(%x, %i, %u) ({
    ^bb0(%a: tensor<i64>, %b: tensor<i64>):
      stablehlo.return %b : tensor<i64>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true} : (tensor<3x2xi64>, tensor<2x1xi64>, tensor<2x2xi64>) -> tensor<3x2xi64>
  check.expect_eq_const %set, dense<[[9, 10], [3, 4], [7, 8]]> : tensor<3x2xi64>
  %x_part = stablehlo.constant dense<[[-1, 0], [1, 100]]> : tensor<2x2xi64>
  %max = "stablehlo.scatter"(%set, %i, %x_part) ({
    ^bb0(%a: tensor<i64>, %b: tensor<i64>):
      %0 = stablehlo.maximum %a, %b : tensor<i64>
      stablehlo.return %0 : tensor<i64>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true} : (tensor<3x2xi64>, tensor<2x1xi64>, tensor<2x2xi64>) -> tensor<3x2xi64>
  check.expect_eq_const %max, dense<[[9, 100], [3, 4], [7, 8]]> : tensor<3x2xi64>
  func.return
}

// -----

// The last of several updates of one element stays.
func.func @scatter_of_repeated_indices() {
  %x = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %i = stablehlo.constant dense<[[2], [0], [2], [5]]> : tensor<4x1xi32>
  %u = stablehlo.constant dense<[7.0, -0.0, 9.0, 4.0]> : tensor<4xf32>
  %set = "stablehlo.scatter"(%x, %i, %u) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<3xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<3xf32>
  check.expect_eq_const %set, dense<[-0.0, 2.0, 9.0]> : tensor<3xf32>
  func.return
}
