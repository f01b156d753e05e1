"""What a trained network does and how: accuracy, spectrum, current manifold."""

from rni.analysis.accuracy import relative_error as relative_error
from rni.analysis.manifold import current_ratio as current_ratio
from rni.analysis.manifold import null_ratio as null_ratio
from rni.analysis.populations import PopulationVectors as PopulationVectors
from rni.analysis.populations import population_vectors as population_vectors
from rni.analysis.populations import populations as populations
from rni.analysis.spectrum import SVD as SVD
from rni.analysis.spectrum import svd as svd
from rni.analysis.summary import Analysis as Analysis
from rni.analysis.summary import analyze as analyze
