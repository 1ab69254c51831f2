# SPDX-License-Identifier: Apache-2.0
"""What the demo model knows: one table per topic, one line per thing.

A line is `name | field | field ...`. A name may carry its plural after a slash
(`mouse/mice`); names in the tables listed in MASS take no article and no plural
(`rain`), names that start with `the` stand as they are (`the sun`).
"""

# colour | home | food | what it can do
ANIMALS = """
cat | grey | a house | fish and mice | climb and jump
dog | brown | a house | meat and bones | run and guard the door
fox/foxes | red | the forest | mice and berries | hide very well
owl | brown | an old tree | mice | see in the dark
bear | brown | the mountains | fish and honey | climb trees
horse | brown | a stable | grass and oats | run very fast
cow | black and white | a farm | grass | give milk
rabbit | grey | a hole in the ground | carrots and grass | jump far
mouse/mice | grey | a small hole | seeds and cheese | run through tiny holes
lion | yellow | the grassland | meat | roar loudly
tiger | orange and black | the jungle | meat | swim well
elephant | grey | the grassland | leaves and grass | lift trees with its trunk
monkey | brown | the jungle | bananas and nuts | swing from tree to tree
frog | green | a pond | flies | jump and swim
snake | green | the desert | mice and eggs | move without legs
duck | white | a lake | plants and small fish | swim and fly
bee | yellow and black | a hive | nectar | make honey
butterfly/butterflies | blue and orange | a garden | nectar | fly from flower to flower
wolf/wolves | grey | the forest | meat | howl at the moon
sheep/sheep | white | a farm | grass | give wool
pig | pink | a farm | corn and potatoes | find food by smell
chicken | white | a farm | corn and seeds | lay eggs
goat | white | the mountains | grass and leaves | climb steep rocks
eagle | brown | the mountains | fish and rabbits | see very far
falcon | brown | the cliffs | small birds | dive faster than any other bird
parrot | green and red | the jungle | fruit and nuts | copy words
hedgehog | brown | a garden | worms and beetles | roll into a ball
squirrel | red | an old tree | nuts | jump from branch to branch
penguin | black and white | the cold south | fish | swim under the ice
giraffe | yellow and brown | the grassland | leaves | reach high branches
camel | brown | the desert | dry grass | walk for days without water
spider | black | a web | flies | make a fine web
ant | black | a nest in the ground | leaves and seeds | carry heavy things
snail | brown | a garden | leaves | carry its house
bird | brown | a nest | seeds and worms | fly and sing
kitten | grey | a house | milk and fish | play with a ball
puppy/puppies | brown | a house | meat and milk | play all day
"""

# colour | place | what is special
PLANTS = """
rose | red | a garden | it smells sweet and has thorns
tulip | yellow | a garden | it opens in spring
sunflower | yellow | a field | it turns to the sun
daisy/daisies | white and yellow | a meadow | it closes at night
oak | green | the forest | it can live for many hundred years
pine | dark green | the mountains | it stays green in winter
birch/birches | white and green | the forest | it has white bark
cactus/cactuses | green | the desert | it keeps water inside
fern | green | the forest | it likes the shade
mushroom | brown | the forest | it comes after the rain
lily/lilies | white | a pond | it floats on the water
willow | green | a river bank | its branches hang down
palm | green | a warm beach | it carries coconuts
tree | green | the forest | it gives shade and clean air
flower | red | a garden | it opens in the sun
clover | green | a meadow | four leaves bring good luck
"""

# taste | colour | where it comes from | what goes with it
FOOD = """
apple | sweet | red | grows on a tree | cheese
banana | sweet | yellow | grows in warm countries | milk
carrot | sweet | orange | grows under the ground | peas
tomato/tomatoes | fresh | red | grows in a garden | salt
potato/potatoes | mild | brown | grows under the ground | butter
lemon | sour | yellow | grows on a tree | tea
cherry/cherries | sweet | red | grows on a tree | cake
pear | sweet | green | grows on a tree | cheese
onion | sharp | white | grows under the ground | soup
strawberry/strawberries | sweet | red | grows in a garden | cream
cake | sweet | brown | is made from flour, eggs and sugar | coffee
pizza | salty | red and yellow | is made from dough, tomatoes and cheese | salad
egg | mild | white | comes from a chicken | bread
pancake | sweet | golden | is made from flour, milk and eggs | honey
sandwich/sandwiches | salty | brown | is made from bread and cheese | an apple
cookie | sweet | brown | is made from flour, butter and sugar | milk
"""
# taste | colour | where it comes from | what goes with it
DISHES = """
bread | mild | brown | is made from flour and water | butter
cheese | salty | yellow | is made from milk | bread
butter | mild | yellow | is made from milk | bread
honey | sweet | golden | comes from bees | bread
milk | mild | white | comes from cows | cookies
rice | mild | white | grows in wet fields | vegetables
soup | salty | red | is made from vegetables and water | bread
chocolate | sweet | brown | is made from cocoa and sugar | milk
tea | mild | brown | is made from dry leaves and hot water | lemon
coffee | bitter | black | is made from roasted beans | cake
salad | fresh | green | is made from leaves and tomatoes | bread
sugar | sweet | white | comes from a plant | tea
salt | salty | white | comes from the sea | potatoes
water | fresh | clear | comes from rain and rivers | lemon
ice cream | sweet | white | is made from milk and sugar | strawberries
"""

# two things of that colour | how to mix it | how it feels
COLOURS = """
red | a rose and a ripe apple | you cannot mix red, it is a basic colour | warm and strong
blue | the sky and the sea | you cannot mix blue, it is a basic colour | calm and cool
yellow | the sun and a lemon | you cannot mix yellow, it is a basic colour | bright and happy
green | grass and leaves | you mix blue and yellow | fresh and quiet
orange | a carrot and a sunset | you mix red and yellow | warm and cheerful
purple | lavender and plums | you mix red and blue | rich and dreamy
pink | a pig and a cherry blossom | you mix red and white | soft and sweet
grey | a mouse and a rain cloud | you mix black and white | quiet and plain
brown | wood and chocolate | you mix red and green | warm and steady
black | the night and coal | you mix all the colours | dark and serious
white | snow and milk | you cannot mix white, it is a basic paint | clean and light
"""

# what it is | what to take | what to do
WEATHER = """
rain | water that falls from the clouds | an umbrella | jump in the puddles
snow | frozen water that falls in soft flakes | a warm coat | build a snowman
wind | air that moves | a jacket | fly a kite
fog | a cloud that lies on the ground | a lamp | walk slowly
hail | rain that has turned to ice | a strong hat | stay inside
thunder | the loud sound that follows lightning | a brave heart | stay inside
lightning | a bright spark between the clouds | the way into a house | count until the thunder comes
frost | thin ice on cold mornings | a pair of gloves | look at the white grass
sunshine | light and warmth from the sun | a hat | sit in the garden
ice | water that has become hard and cold | a pair of skates | slide over the lake
"""
# what it is | what to take | what to do
WEATHER_THINGS = """
storm | very strong wind with rain | a thick coat | stay at home
cloud | many tiny drops high in the air | a jacket | look for shapes in the sky
rainbow | sunlight that shines through rain | a camera | count its seven colours
"""

# what people do then
DAYS = """
Monday | start a new week
Tuesday | go to work or to school
Wednesday | reach the middle of the week
Thursday | look forward to the weekend
Friday | finish the week
Saturday | go to the market and play
Sunday | rest and visit friends
"""

# season | what happens
MONTHS = """
January | winter | a new year begins
February | winter | the month has only 28 days
March | spring | the first flowers open
April | spring | rain and sun take turns
May | spring | the trees are green again
June | summer | the days are long
July | summer | it is hot and people swim
August | summer | the corn is ripe
September | autumn | the apples are ripe
October | autumn | the leaves turn red
November | autumn | fog lies over the fields
December | winter | the nights are long
"""

# months | weather | what people do
SEASONS = """
spring | March, April and May | mild | plant flowers
summer | June, July and August | hot | swim in the lake
autumn | September, October and November | windy | pick apples
winter | December, January and February | cold | build snowmen
"""

# where it moves | who drives it | speed | what it is for
TRAVEL = """
car | on the road | a driver | fast | trips with the family
bus/buses | on the road | a bus driver | not very fast | rides through the town
train | on rails | a train driver | very fast | long trips
plane | through the air | a pilot | very fast | trips to far countries
boat | on the water | a sailor | slow | trips on a lake
bicycle | on a path | the rider | not very fast | short trips
tram | on rails through the town | a tram driver | not very fast | short rides
truck | on the road | a truck driver | not very fast | heavy loads
taxi | on the road | a taxi driver | fast | rides through the town at night
helicopter | through the air | a pilot | fast | help in the mountains
balloon | through the air with the wind | a pilot | slow | quiet trips over the fields
sled | over the snow | the rider | fast | fun in winter
"""

# look | where | what it does
SEA = """
whale | very large and grey | in the deep sea | sings long songs
shark | grey with sharp teeth | in warm water | hunts fish
dolphin | grey and smooth | near the coast | jumps out of the water
crab | red with two claws | on the beach | walks sideways
octopus/octopuses | soft with eight arms | between the rocks | changes its colour
fish/fish | small and silver | in the whole sea | breathes under water
seal | round and grey | on cold coasts | sleeps on the ice
turtle | green with a hard shell | in warm water | lays its eggs in the sand
jellyfish/jellyfish | clear and soft | in open water | floats with the waves
starfish/starfish | orange with five arms | on the sea floor | moves very slowly
wave | blue and white | on the top of the sea | rolls to the beach
shell | hard and shiny | on the beach | was once the home of a small animal
coral | red and full of branches | in warm water | is a home for many fish
lighthouse | tall and white | on the coast | shows ships the way at night
island | green with yellow beaches | in the middle of the sea | has water on all sides
harbour | busy and full of ships | on the coast | gives ships a safe place
"""

# how to play | sound | made of
MUSIC = """
piano | you press its black and white keys | clear | wood and strings
violin | you move a bow over its strings | high and sweet | wood
guitar | you pluck its six strings | warm | wood
drum | you hit it with sticks or hands | loud and deep | wood and skin
flute | you blow over a small hole | high and soft | metal
trumpet | you blow into it and press its valves | bright and loud | brass
harp | you pluck its many strings with both hands | gentle | wood and strings
cello | you hold it between the knees and move a bow | deep and warm | wood
bell | you ring it | clear and long | metal
whistle | you blow into it | high and loud | metal
organ | you press its keys and pedals | full and mighty | pipes
"""

# what it is | look | a fact
SPACE = """
the sun | a star | yellow and very bright | it gives us light and warmth
the moon | a ball of rock | round and silver | it goes around the earth in about a month
the earth | our planet | blue and green | it goes around the sun in a year
Mars | a planet | red | it has the highest mountain of all planets
Saturn | a planet | yellow with wide rings | its rings are made of ice and rock
Jupiter | a planet | brown and white | it is the largest planet
Venus | a planet | white and bright | it is hotter than an oven
star | a ball of hot gas | small and bright in the sky | it shines for millions of years
comet | a ball of ice and dust | bright with a long tail | it comes from far away
rocket | a machine that flies into space | tall and white | it needs a lot of fuel
telescope | a tool for looking at the stars | like a long tube | it makes far things look near
planet | a large ball that goes around a star | round | eight of them go around our sun
"""

# what it is for | made of | where it is
HOME = """
hammer | to hit nails | wood and metal | in the shed
saw | to cut wood | metal | in the shed
spoon | to eat soup | metal | in the kitchen
knife/knives | to cut bread | metal | in the kitchen
cup | to drink tea | clay | in the kitchen
lamp | to give light | glass and metal | on the table
bed | to sleep in | wood | in the bedroom
pillow | to rest your head on | cloth and feathers | on the bed
chair | to sit on | wood | at the table
table | to eat and work at | wood | in the kitchen
door | to go in and out | wood | at the front of the house
window | to let in light | glass | in the wall
clock | to show the time | metal and glass | on the wall
key | to open a lock | metal | in a pocket
broom | to sweep the floor | wood and straw | in the corner
needle | to sew clothes | metal | in a small box
ladder | to climb up high | wood | in the shed
book | to read | paper | on the shelf
umbrella | to stay dry in the rain | cloth and metal | by the door
house | to live in | stone and wood | in the town
computer | to write and to run programs | metal and glass | on the table
phone | to talk to people far away | metal and glass | in a pocket
ball | to throw and to kick | rubber | in the garden
basket | to carry things | straw | in the kitchen
"""

# what the person does | where | with what
JOBS = """
baker | bakes bread and cakes | in a bakery | an oven
doctor | helps sick people | in a hospital | a kind heart
farmer | grows corn and keeps cows | on a farm | a tractor
teacher | helps children to learn | in a school | books
sailor | sails a ship | at sea | a map
pilot | flies a plane | in the air | good eyes
cook | makes soup and other food | in a kitchen | a large pot
painter | paints pictures | in a bright room | brushes and paint
gardener | looks after plants | in a garden | a spade
singer | sings songs | on a stage | a good voice
tailor | makes clothes | in a small shop | a needle
librarian | looks after books | in a library | order
postman/postmen | brings letters | on the street | a bicycle
nurse | looks after sick people | in a hospital | a kind heart
builder | builds houses | on a building site | a hammer
"""

# how it goes | where | what you need
GAMES = """
football | two teams kick a ball into a goal | on a field | a ball
tennis | two players hit a ball over a net | on a court | a racket
chess | two players move pieces and catch the king | at a table | a board
swimming | you move through water with arms and legs | in a pool | a towel
running | you move your legs as fast as you can | in a park | good shoes
dancing | you move to the music | in a hall | music
skating | you slide over the ice | on a frozen lake | skates
basketball | two teams throw a ball into a basket | in a hall | a ball
hiking | you walk up the hills for hours | in the mountains | strong shoes
cycling | you ride a bicycle | on a path | a bicycle
"""

# look | home | wish
TALES = """
dragon | large and green | a cave | a friend
king | old and wise | a castle | peace for all people
queen | proud and clever | a castle | a garden full of roses
princess/princesses | young and brave | a tall tower | an adventure
prince | young and kind | a castle | a fast horse
knight | strong and brave | a stone house | honour
wizard | old with a white beard | a tower | a new spell
witch/witches | clever with a black hat | a hut in the forest | a quiet evening
giant | tall and gentle | the mountains | a bed that is long enough
pirate | wild and funny | a ship | a chest of gold
robot | shiny and polite | a workshop | a full battery
fairy/fairies | tiny with silver wings | a flower | a drop of honey
mermaid | beautiful with a green tail | the sea | a walk on land
dinosaur | huge and scaly | a green valley | a large breakfast
unicorn | white with a golden horn | a magic forest | a quiet lake
ghost | pale and shy | an old house | someone to talk to
"""

MASS = {"DISHES", "COLOURS", "WEATHER", "DAYS", "MONTHS", "SEASONS", "GAMES", "NUMBERS"}

NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
).split()

# a thing that comes in that number
NUMBERS = """
one | there is one sun in our sky
two | a bicycle has two wheels
three | a triangle has three sides
four | a table has four legs
five | a hand has five fingers
six | a bee has six legs
seven | a week has seven days
eight | a spider has eight legs
nine | nine is three times three
ten | we have ten fingers
eleven | a football team has eleven players
twelve | a year has twelve months
"""

# other words for a group of things, as people ask for them
GROUPS = {
    "birds": "owl eagle falcon parrot penguin duck",
    "insects": "bee butterfly ant",
    "pets": "cat dog rabbit parrot",
    "fruit": "apple banana pear cherry lemon strawberry",
    "fruits": "apple banana pear cherry lemon strawberry",
    "vegetables": "carrot potato onion tomato",
    "flowers": "rose tulip sunflower daisy lily",
    "trees": "oak pine birch willow palm",
    "instruments": "piano violin guitar drum flute harp",
    "planets": "Mars Saturn Jupiter Venus",
    "tools": "hammer saw needle ladder",
    "furniture": "bed chair table lamp",
    "drinks": "milk tea coffee water",
    "sports": "football tennis running skating basketball",
    "games": "chess football tennis",
    "colors": "red blue green yellow",
    "monsters": "dragon giant ghost witch",
    "vehicles": "car bus train plane bicycle",
}

GIRLS = "Anna Mia Lina Ella Rosa Nora Clara Ida Lucy Emma Ruby Zoe Maya Sofia Olga Tina".split()
BOYS = "Tom Ben Max Leo Paul Finn Otto Noah Sam Jack Oscar Milo Theo Hugo Ravi Karl".split()
