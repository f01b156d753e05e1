"""Linear networks, exactly: section 3 of the paper and its appendices as pure functions on arrays; and the Hessian of
the ReLU proxy loss.

The moments themselves are in `rni.theory.moments`, a name that a function of this list would hide.
"""

from rni.theory.averaged import LinearProblem as LinearProblem
from rni.theory.averaged import averaged_gradient as averaged_gradient
from rni.theory.averaged import averaged_hessian as averaged_hessian
from rni.theory.averaged import averaged_hessian_product as averaged_hessian_product
from rni.theory.averaged import averaged_loss as averaged_loss
from rni.theory.averaged import linear_problem as linear_problem
from rni.theory.averaged import moment_jacobian as moment_jacobian
from rni.theory.capacity import largest_channels as largest_channels
from rni.theory.capacity import least_neurons as least_neurons
from rni.theory.capacity import untuned_error as untuned_error
from rni.theory.capacity import wendel as wendel
from rni.theory.channels import ChannelResiduals as ChannelResiduals
from rni.theory.channels import Factors as Factors
from rni.theory.channels import channel_residuals as channel_residuals
from rni.theory.channels import multiplexed as multiplexed
from rni.theory.conditions import IntegratorReport as IntegratorReport
from rni.theory.conditions import Mode as Mode
from rni.theory.conditions import g_coefficients as g_coefficients
from rni.theory.conditions import is_generalizing_integrator as is_generalizing_integrator
from rni.theory.convergence import Advice as Advice
from rni.theory.convergence import Convergence as Convergence
from rni.theory.convergence import advise as advise
from rni.theory.convergence import condition_number as condition_number
from rni.theory.convergence import fastest_convergence as fastest_convergence
from rni.theory.convergence import hessian_spectrum as hessian_spectrum
from rni.theory.convergence import recipe_cosine as recipe_cosine
from rni.theory.duration import LinearNetwork as LinearNetwork
from rni.theory.duration import short_sighted_network as short_sighted_network
from rni.theory.duration import shortest_guaranteed_duration as shortest_guaranteed_duration
from rni.theory.manifolds import Plane as Plane
from rni.theory.manifolds import beta_of_scale as beta_of_scale
from rni.theory.manifolds import g_1 as g_1
from rni.theory.manifolds import g_2 as g_2
from rni.theory.manifolds import gamma_matrix as gamma_matrix
from rni.theory.manifolds import intersection as intersection
from rni.theory.manifolds import plane as plane
from rni.theory.manifolds import plane_of as plane_of
from rni.theory.manifolds import rank_one as rank_one
from rni.theory.manifolds import singular_angles as singular_angles
from rni.theory.manifolds import undriven_mode as undriven_mode
from rni.theory.manifolds import unread_mode as unread_mode
from rni.theory.manifolds import vertical_null_mode as vertical_null_mode
from rni.theory.manifolds import vertical_state as vertical_state
from rni.theory.perturbation import expected_perturbation as expected_perturbation
from rni.theory.perturbation import moment_perturbation as moment_perturbation
from rni.theory.perturbation import random_bulk as random_bulk
from rni.theory.proxy import ProxyHessian as ProxyHessian
from rni.theory.proxy import proxy_hessian as proxy_hessian
from rni.theory.special_cases import OneStepDescent as OneStepDescent
from rni.theory.special_cases import SameVectorsDescent as SameVectorsDescent
from rni.theory.subspace import null_basis as null_basis
from rni.theory.subspace import reduced_problem as reduced_problem
from rni.theory.subspace import to_omega as to_omega
from rni.theory.subspace import to_weights as to_weights
